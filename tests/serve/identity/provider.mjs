// An authorization server on loopback: node provider.mjs PORT KEY_ID SECRET. It prints its port.
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
const server = createServer();
server.listen(Number(port), '127.0.0.1', () => {
  const here = server.address().port;
  const provider = new Provider(`http://127.0.0.1:${here}`, {
    clients: [client('clerk'), client('guest')],
    jwks: { keys: [key] },
    features: {
      devInteractions: { enabled: false },
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
    extraTokenClaims: (_context, token) => ({ groups: token.clientId === 'clerk' ? ['platform'] : [] }),
  });
  server.on('request', provider.callback());
  console.log(here);
});
