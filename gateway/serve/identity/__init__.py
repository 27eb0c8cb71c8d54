"""Access tokens of identity providers: the gateway as a resource server of OAuth 2.1."""
