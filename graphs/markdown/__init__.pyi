# For type checkers: the names and modules of `__init__.py`.

from graphs.markdown.dialect import add_edge as add_edge
from graphs.markdown.dialect import collect as collect
from graphs.markdown.dialect import parse as parse
from graphs.markdown.dialect import render as render
from graphs.markdown.dialect import write as write
from graphs.markdown.document import Document as Document
from graphs.markdown.document import Edge as Edge
from graphs.markdown.document import Link as Link
from graphs.markdown.document import Section as Section
from graphs.markdown.document import Text as Text
from graphs.markdown.fields import KEYS as KEYS
from graphs.markdown.fields import LINK_LISTS as LINK_LISTS
from graphs.markdown.fields import TEXT_LISTS as TEXT_LISTS
from graphs.markdown.frontmatter import Scalar as Scalar
