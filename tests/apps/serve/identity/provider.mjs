// An identity provider on loopback: node provider.mjs PORT KEY_ID SECRET. It prints its port.
// Clients get tokens for themselves; people sign in with any name and any password.
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const [port, kid, secret] = process.argv.slice(2);
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const key = { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'ES256' };
const client = (client_id) => ({
  client_id,
  client_secret: secret,
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
  id_token_signed_response_alg: 'ES256',
});
// A native one may be sent back to any port of loopback.
const browser = {
  ...client('browser'),
  application_type: 'native',
  grant_types: ['authorization_code'],
  redirect_uris: ['http://127.0.0.1/account/callback'],
  response_types: ['code'],
};
const groupsOf = (name) => (['clerk', 'ada'].includes(name) ? ['platform'] : []);
const server = createServer();
server.listen(Number(port), '127.0.0.1', () => {
  const here = server.address().port;
  // For browsers another site than a gateway at 127.0.0.1.
  const provider = new Provider(`http://localhost:${here}`, {
    clients: [client('clerk'), client('guest'), browser],
    jwks: { keys: [key] },
    features: {
      devInteractions: { enabled: true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource) => ({
          scope: 'billing.read tools.use',
          audience: resource,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
    claims: { openid: ['sub', 'groups'] },
    conformIdTokenClaims: false,
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: () => ({ sub, groups: groupsOf(sub) }),
    }),
    extraTokenClaims: (_context, token) => ({ groups: groupsOf(token.accountId ?? token.clientId) }),
  });
  server.on('request', provider.callback());
  console.log(here);
});
