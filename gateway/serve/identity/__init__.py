"""Access tokens of identity providers: the gateway as an OAuth 2.1 resource server."""

from gateway.serve.identity.access_tokens import LEEWAY_S as LEEWAY_S
from gateway.serve.identity.code_flow import ProviderSignIn as ProviderSignIn
from gateway.serve.identity.issuers import BrowserSignIn as BrowserSignIn
from gateway.serve.identity.issuers import Issuer as Issuer
from gateway.serve.identity.provider_keys import MAX_AGE_S as MAX_AGE_S
from gateway.serve.identity.provider_keys import MAX_BYTES as MAX_BYTES
from gateway.serve.identity.provider_keys import REFRESH_S as REFRESH_S
from gateway.serve.identity.provider_keys import RETRY_S as RETRY_S
from gateway.serve.identity.provider_keys import UNUSED_S as UNUSED_S
from gateway.serve.identity.provider_keys import ProviderKeys as ProviderKeys
