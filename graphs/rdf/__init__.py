"""RDF: SPARQL, SHACL, federation, import and export."""
