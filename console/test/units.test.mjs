// Unit tests that need no browser: formats, snippets, decryption of keys, merge patches.
// They are run by `node --test`, and by go test.
import test from 'node:test'
import assert from 'node:assert/strict'
import { createPrivateKey, webcrypto } from 'node:crypto'
import { execFileSync } from 'node:child_process'

globalThis.crypto ??= webcrypto
const {
  absolute, bytes, duration, fromBase64, hexdump, quantity, relative, short, toBase64URL, withoutManagedFields,
} = await import('../static/lib/format.js')
const { freshet } = await import('../static/lib/freshetcommand.js')
const { decryptJWE, newKeyPair, privateKeyDER } = await import('../static/lib/jose.js')
const { mergePatch, setPath } = await import('../static/lib/patch.js')
const { parseResource } = await import('../static/lib/requests.js')
const { curl, golang, kubectl, python } = await import('../static/lib/snippets.js')

test('durations and times', () => {
  for (const [seconds, want] of [
    [0, '0s'],
    [5, '5s'],
    [65, '1m 5s'],
    [3600, '1h'],
    [90061, '1d 1h'],
    [80 * 86400 + 3600, '80d'],
    [500 * 86400, '1y'],
  ]) {
    assert.equal(duration(seconds), want, String(seconds))
  }
  const now = Date.parse('2026-01-02T00:00:00Z')
  assert.equal(relative('2026-01-01T23:59:30Z', now), '30s ago')
  assert.equal(relative('2026-01-03T00:00:00Z', now), 'in 1d')
  assert.equal(relative('no time', now), '–')
  assert.equal(absolute('2026-01-02T03:04:05.678Z', true), '2026-01-02 03:04:05 UTC')
})

test('numbers', () => {
  for (const [text, want] of [
    ['50k', 50000],
    ['1Gi', 2 ** 30],
    ['198159060Ki', 198159060 * 1024],
    ['0', 0],
    ['250m', 0.25],
    ['1e3', 1000],
  ]) {
    assert.equal(quantity(text), want, text)
  }
  assert.ok(Number.isNaN(quantity('lots')))
  assert.equal(bytes(0), '0 B')
  assert.equal(bytes(1536), '1.5 KiB')
  assert.equal(short(1234567), '1.2M')
  assert.equal(short(0.25), '0.25')
})

test('hex dump', () => {
  const text = hexdump(new TextEncoder().encode('hello\n'))
  assert.equal(text, '000000  68 65 6c 6c 6f 0a                                hello.')
})

test('YAML without managed fields', () => {
  const head = 'apiVersion: v1\nmetadata:\n'
  const managed = '  managedFields:\n  - apiVersion: v1\n    fieldsV1:\n      f:spec: {}\n  - manager: x\n'
  const spec = '  name: a\nspec:\n  x: 1\n'
  const status = 'status:\n  conditions:\n  - type: Ready\n'
  const yaml = head + managed + spec + status
  assert.equal(withoutManagedFields(yaml), head + spec + status)
  assert.equal(withoutManagedFields(yaml, false).trim(), (head + spec).trim())
})

const base = '/apis/cloud.vendor.io/v1alpha1'
const acme = base + '/namespaces/acme'

test('paths of resources', () => {
  const { query, ...parts } = parseResource(acme + '/users/a%40b.c?x=y')
  assert.equal(query.get('x'), 'y')
  assert.deepEqual(parts, { org: 'acme', plural: 'users', name: 'a@b.c', subresource: undefined })
  assert.equal(parseResource('/admin/v2/tenants'), null)
})

test('every method has snippets, and none has the token', () => {
  const revocation = { body: '{"spec":{"revoke":true}}', contentType: 'application/merge-patch+json' }
  for (const [r, wantKubectl, wantFreshet] of [
    [
      { method: 'GET', url: acme + '/apikeys?limit=500' },
      'kubectl get apikeys -n acme',
      'freshet get apikeys -n acme',
    ],
    [
      { method: 'GET', url: acme + '/messagingclusters?fieldSelector=metadata.name%3Dprod' },
      'kubectl get messagingclusters -n acme --field-selector metadata.name=prod',
      'freshet get messagingclusters -n acme',
    ],
    [
      { method: 'PATCH', url: acme + '/apikeys/a', ...revocation },
      `kubectl patch apikeys a -n acme --type=merge -p '{"spec":{"revoke":true}}'`,
      'freshet apikey revoke a -n acme',
    ],
    [
      { method: 'DELETE', url: acme + '/messaginginstances/a?propagationPolicy=Foreground' },
      'kubectl delete messaginginstances a -n acme --cascade=foreground',
      'freshet delete messaginginstances a -n acme',
    ],
    [{ method: 'GET', url: '/readyz?verbose' }, `kubectl get --raw '/readyz?verbose'`, ''],
    [{ method: 'PUT', url: '/admin/v2/persistent/public/default/t' }, '', ''],
  ]) {
    assert.equal(kubectl(r), wantKubectl)
    assert.equal(freshet(r), wantFreshet)
    assert.match(curl(r), /Bearer \$TOKEN/)
    assert.ok(curl(r).includes('"$FRESHET_SERVER"'))
  }
})

test('a shell runs curl snippets with any body', () => {
  const body = `{"text":"it's $HOME \`id\` \\"quoted\\" & more"}`
  const text = curl({ method: 'POST', url: `/x y/'$(id)'?a=b&c=d`, body, contentType: 'application/json' })
  const fakeCurl = `curl() { printf '%s\\n' "$@"; }; TOKEN=t FRESHET_SERVER=http://h; `
  const printed = execFileSync('bash', ['-c', fakeCurl + text], { encoding: 'utf8' })
  assert.ok(printed.includes('Authorization: Bearer t'), printed)
  assert.ok(printed.includes(`http://h/x y/'$(id)'?a=b&c=d`), printed)
  assert.ok(printed.includes(JSON.stringify(JSON.parse(body))), printed)
})

/** Encrypts a text as the server does. */
async function seal(alg, hash, publicPEM, text) {
  const utf8 = value => new TextEncoder().encode(value)
  const header = toBase64URL(utf8(JSON.stringify({ alg, enc: 'A256GCM' })))
  const spki = fromBase64(publicPEM.replace(/-----[A-Z ]+-----|\s/g, ''))
  const rsa = await crypto.subtle.importKey('spki', spki, { name: 'RSA-OAEP', hash }, false, ['encrypt'])
  const key = crypto.getRandomValues(new Uint8Array(32))
  const iv = crypto.getRandomValues(new Uint8Array(12))
  const aes = await crypto.subtle.importKey('raw', key, 'AES-GCM', false, ['encrypt'])
  const algorithm = { name: 'AES-GCM', iv, additionalData: utf8(header) }
  const sealed = new Uint8Array(await crypto.subtle.encrypt(algorithm, aes, utf8(text)))
  const wrapped = await crypto.subtle.encrypt({ name: 'RSA-OAEP' }, rsa, key)
  return [header, ...[wrapped, iv, sealed.slice(0, -16), sealed.slice(-16)].map(toBase64URL)].join('.')
}

test('tokens are decrypted: both algorithms, PKCS #8 and PKCS #1', async () => {
  const pair = await newKeyPair(2048)
  assert.match(pair.publicPEM, /^-----BEGIN PUBLIC KEY-----/)
  const pkcs1 = createPrivateKey(pair.privatePEM).export({ type: 'pkcs1', format: 'pem' })
  assert.match(pkcs1, /BEGIN RSA PRIVATE KEY/)
  for (const [alg, hash] of [['RSA-OAEP', 'SHA-1'], ['RSA-OAEP-256', 'SHA-256']]) {
    const jwe = await seal(alg, hash, pair.publicPEM, 'the token')
    assert.equal(await decryptJWE(jwe, pair.privatePEM), 'the token')
    assert.equal(await decryptJWE(jwe + '\n', pkcs1), 'the token')
  }
})

test('errors of the decryption name the reason', async () => {
  const mine = await newKeyPair(2048)
  const other = await newKeyPair(2048)
  const pem = label => `-----BEGIN ${label}-----\nAA\n-----END ${label}-----`
  const jwe = await seal('RSA-OAEP', 'SHA-1', mine.publicPEM, 'x')
  await assert.rejects(decryptJWE(jwe, other.privatePEM), /does not belong to the key pair/)
  await assert.rejects(decryptJWE('a.b', mine.privatePEM), /five parts/)
  await assert.rejects(decryptJWE(jwe.slice(0, -4) + 'AAAA', mine.privatePEM))
  assert.throws(() => privateKeyDER('nothing'), /not a PEM/)
  assert.throws(() => privateKeyDER(mine.publicPEM), /public key/)
  assert.throws(() => privateKeyDER(pem('ENCRYPTED PRIVATE KEY')), /password/)
  assert.throws(() => privateKeyDER(pem('EC PRIVATE KEY')), /RSA/)
})

test('the change of a form is a merge patch', () => {
  const a = {
    metadata: { name: 'a', labels: { x: '1', y: '2' } },
    spec: { list: [1, 2], auth: { apikey: {} }, name: 'n' },
  }
  assert.equal(mergePatch(a, structuredClone(a)), undefined)
  const b = structuredClone(a)
  b.spec.list = [2]
  delete b.metadata.labels.y
  delete b.spec.auth.apikey
  b.spec.auth.oauth2 = {}
  assert.deepEqual(mergePatch(a, b), {
    metadata: { labels: { y: null } },
    spec: { list: [2], auth: { apikey: null, oauth2: {} } },
  })
  setPath(b, ['metadata', 'labels', 'x'], undefined)
  setPath(b, ['spec', 'name'], '')
  setPath(b, ['spec', 'config', 'custom', 'k'], 'v')
  assert.deepEqual(b, {
    metadata: { name: 'a' },
    spec: { list: [2], auth: { oauth2: {} }, config: { custom: { k: 'v' } } },
  })
  assert.deepEqual(mergePatch(a, b).metadata, { labels: null })
})

test('programs send the request of the console', async () => {
  const { createServer } = await import('node:http')
  const { mkdtempSync, rmSync, writeFileSync } = await import('node:fs')
  const { spawn } = await import('node:child_process')
  const seen = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', d => { body += d })
    request.on('end', () => {
      const { authorization, 'content-type': type, 'x-msg-key': key } = request.headers
      seen.push([request.method, decodeURIComponent(request.url), authorization, type, key, body])
      response.end('received\n')
    })
  })
  await new Promise(done => server.listen(0, '127.0.0.1', done))
  const dir = mkdtempSync('/tmp/freshet-snippets-')
  const env = { ...process.env, TOKEN: 't', FRESHET_SERVER: `http://127.0.0.1:${server.address().port}`, GOFLAGS: '' }
  const run = (...words) => new Promise((done, fail) => {
    const p = spawn(words[0], words.slice(1), { cwd: dir, env })
    let out = ''
    for (const s of [p.stdout, p.stderr]) s.on('data', d => { out += d })
    p.on('error', fail)
    p.on('close', code => done([code, out]))
  })
  const write = {
    method: 'POST',
    url: `/a%20b/'"$(id)?x=%20&y=z`,
    contentType: 'application/json',
    headers: { 'X-Msg-Key': `it's "k"` },
    body: '{"text":"a `tick`, a \\\\ and 𝄞\\u2028"}',
  }
  try {
    for (const r of [write, { method: 'GET', url: '/plain', headers: {} }]) {
      const body = r.body == null ? '' : JSON.stringify(JSON.parse(r.body))
      const want = [r.method, decodeURIComponent(r.url), 'Bearer t', r.contentType, r.headers['X-Msg-Key'], body]
      for (const [file, text, ...words] of [
        ['p.py', python(r), 'python3', 'p.py'],
        ['main.go', golang(r), 'go', 'run', 'main.go'],
      ]) {
        assert.ok(!text.includes('Bearer t'), 'the program contains the token')
        writeFileSync(`${dir}/${file}`, text)
        let result
        try {
          result = await run(...words)
        } catch {
          console.log(`NOT TESTED: ${words[0]} is not installed`)
          continue
        }
        assert.deepEqual(result, [0, 'received\n'], text)
        assert.deepEqual(seen.pop(), want, text)
      }
    }
  } finally {
    server.close()
    rmSync(dir, { recursive: true })
  }
})
