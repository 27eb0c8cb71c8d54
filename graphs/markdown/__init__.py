"""Markdown-LD texts: documents, their front matter and their files."""
