# For type checkers: the names and modules of `__init__.py`.

from gateway.plugins.spelling.corrector import CatalogCorrector as CatalogCorrector
from gateway.plugins.spelling.corrector import SpellingCorrector as SpellingCorrector
from gateway.plugins.spelling.corrector import likely_languages as likely_languages
from gateway.plugins.spelling.word_lists import COMMON as COMMON
from gateway.plugins.spelling.word_lists import CatalogWords as CatalogWords
from gateway.plugins.spelling.word_lists import common_words as common_words
from gateway.plugins.spelling.word_lists import find_word_lists as find_word_lists
from gateway.plugins.spelling.word_lists import word_list as word_list
