"""Embedders: protocol, vector caches, and a client for OpenAI's API."""

from gateway.embed.cache import BLANK as BLANK
from gateway.embed.cache import Embed as Embed
from gateway.embed.cache import MemoryVectorStore as MemoryVectorStore
from gateway.embed.cache import QueryEmbedder as QueryEmbedder
from gateway.embed.cache import QueryEmbeddings as QueryEmbeddings
from gateway.embed.cache import fit_text as fit_text
from gateway.embed.cache import request_vectors as request_vectors
from gateway.embed.cache import split_into_batches as split_into_batches
from gateway.embed.cache import text_key as text_key
from gateway.embed.documents import DocumentVectors as DocumentVectors
from gateway.embed.documents import embed_documents as embed_documents
from gateway.embed.protocol import Embedded as Embedded
from gateway.embed.protocol import Embedder as Embedder
from gateway.embed.protocol import EmbedderInfo as EmbedderInfo
from gateway.embed.protocol import EmbeddingLimits as EmbeddingLimits
from gateway.embed.protocol import Role as Role
from gateway.embed.protocol import resolve_embedder as resolve_embedder
