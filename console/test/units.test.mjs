// Units that need no browser: formatters, snippets, the opening of keys, metrics,
// lines of streams. Run by `node --test`, and by go test.
import test from 'node:test'
import assert from 'node:assert/strict'
import { createPrivateKey, webcrypto } from 'node:crypto'
import { execFileSync } from 'node:child_process'

globalThis.crypto ??= webcrypto
const { absolute, bytes, fromBase64, hexdump, quantity, relative, short, span, toBase64URL, withoutBookkeeping } = await import('../static/lib/format.js')
const { curl, freshet, golang, kubectl, parseResource, python } = await import('../static/lib/snippets.js')
const { mergePatch, put } = await import('../static/lib/patch.js')
const { newKeyPair, openJWE, privateKeyOf } = await import('../static/lib/jose.js')

test('spans and times', () => {
  for (const [seconds, want] of [[0, '0s'], [5, '5s'], [65, '1m 5s'], [3600, '1h'], [90061, '1d 1h'], [80 * 86400 + 3600, '80d'], [500 * 86400, '1y']]) assert.equal(span(seconds), want, String(seconds))
  const now = Date.parse('2026-01-02T00:00:00Z')
  assert.equal(relative('2026-01-01T23:59:30Z', now), '30s ago')
  assert.equal(relative('2026-01-03T00:00:00Z', now), 'in 1d')
  assert.equal(relative('no time', now), '–')
  assert.equal(absolute('2026-01-02T03:04:05.678Z', true), '2026-01-02 03:04:05 UTC')
})

test('numbers', () => {
  for (const [text, want] of [['50k', 50000], ['1Gi', 2 ** 30], ['198159060Ki', 198159060 * 1024], ['0', 0], ['250m', 0.25], ['1e3', 1000]]) assert.equal(quantity(text), want, text)
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

test('YAML without bookkeeping', () => {
  const yaml = 'apiVersion: v1\nmetadata:\n  managedFields:\n  - apiVersion: v1\n    fieldsV1:\n      f:spec: {}\n  - manager: x\n  name: a\nspec:\n  x: 1\nstatus:\n  conditions:\n  - type: Ready\n'
  assert.equal(withoutBookkeeping(yaml), 'apiVersion: v1\nmetadata:\n  name: a\nspec:\n  x: 1\nstatus:\n  conditions:\n  - type: Ready\n')
  assert.equal(withoutBookkeeping(yaml, false).trim(), 'apiVersion: v1\nmetadata:\n  name: a\nspec:\n  x: 1')
})

const base = '/apis/cloud.vendor.io/v1alpha1'

test('paths of resources', () => {
  assert.deepEqual({ ...parseResource(base + '/namespaces/acme/users/a%40b.c'), query: 0 }, { org: 'acme', kind: 'users', name: 'a@b.c', sub: undefined, query: 0 })
  assert.equal(parseResource('/admin/v2/tenants'), null)
})

test('a snippet for every method, and never a token', () => {
  const all = [
    [{ method: 'GET', url: base + '/namespaces/acme/apikeys?limit=500' }, 'kubectl get apikeys -n acme', 'freshet get apikeys -n acme'],
    [{ method: 'GET', url: base + '/namespaces/acme/messagingclusters?fieldSelector=metadata.name%3Dprod' }, 'kubectl get messagingclusters -n acme --field-selector metadata.name=prod', 'freshet get messagingclusters -n acme'],
    [{ method: 'PATCH', url: base + '/namespaces/acme/apikeys/a', body: '{"spec":{"revoke":true}}', contentType: 'application/merge-patch+json' }, `kubectl patch apikeys a -n acme --type=merge -p '{"spec":{"revoke":true}}'`, 'freshet apikey revoke a -n acme'],
    [{ method: 'DELETE', url: base + '/namespaces/acme/messaginginstances/a?propagationPolicy=Foreground' }, 'kubectl delete messaginginstances a -n acme --cascade=foreground', 'freshet delete messaginginstances a -n acme'],
    [{ method: 'GET', url: '/readyz?verbose' }, `kubectl get --raw '/readyz?verbose'`, ''],
    [{ method: 'PUT', url: '/admin/v2/persistent/public/default/t' }, '', ''],
  ]
  for (const [r, k, f] of all) {
    assert.equal(kubectl(r), k)
    assert.equal(freshet(r), f)
    assert.match(curl(r), /Bearer \$TOKEN/)
    assert.ok(curl(r).includes('"$BASE_URL"'))
  }
})

test('curl snippets survive a shell, whatever is in the body', () => {
  const body = `{"text":"it's $HOME \`id\` \\"quoted\\" & more"}`
  const text = curl({ method: 'POST', url: `/x y/'$(id)'?a=b&c=d`, body, contentType: 'application/json' })
  const printed = execFileSync('bash', ['-c', `curl() { printf '%s\\n' "$@"; }; TOKEN=t BASE_URL=http://h; ${text}`], { encoding: 'utf8' })
  assert.ok(printed.includes('Authorization: Bearer t'), printed)
  assert.ok(printed.includes(`http://h/x y/'$(id)'?a=b&c=d`), printed)
  assert.ok(printed.includes(JSON.stringify(JSON.parse(body))), printed)
})

async function seal(alg, hash, publicPEM, text) {
  const header = toBase64URL(new TextEncoder().encode(JSON.stringify({ alg, enc: 'A256GCM' })))
  const spki = fromBase64(publicPEM.replace(/-----[A-Z ]+-----|\s/g, ''))
  const rsa = await crypto.subtle.importKey('spki', spki, { name: 'RSA-OAEP', hash }, false, ['encrypt'])
  const cek = crypto.getRandomValues(new Uint8Array(32)), iv = crypto.getRandomValues(new Uint8Array(12))
  const aes = await crypto.subtle.importKey('raw', cek, 'AES-GCM', false, ['encrypt'])
  const sealed = new Uint8Array(await crypto.subtle.encrypt({ name: 'AES-GCM', iv, additionalData: new TextEncoder().encode(header) }, aes, new TextEncoder().encode(text)))
  const wrapped = await crypto.subtle.encrypt({ name: 'RSA-OAEP' }, rsa, cek)
  return [header, toBase64URL(wrapped), toBase64URL(iv), toBase64URL(sealed.slice(0, -16)), toBase64URL(sealed.slice(-16))].join('.')
}

test('keys are opened: both algorithms, PKCS #8 and PKCS #1', async () => {
  const pair = await newKeyPair(2048)
  assert.match(pair.publicPEM, /^-----BEGIN PUBLIC KEY-----/)
  const pkcs1 = createPrivateKey(pair.privatePEM).export({ type: 'pkcs1', format: 'pem' })
  assert.match(pkcs1, /BEGIN RSA PRIVATE KEY/)
  for (const [alg, hash] of [['RSA-OAEP', 'SHA-1'], ['RSA-OAEP-256', 'SHA-256']]) {
    const jwe = await seal(alg, hash, pair.publicPEM, 'the token')
    assert.equal(await openJWE(jwe, pair.privatePEM), 'the token')
    assert.equal(await openJWE(jwe + '\n', pkcs1), 'the token')
  }
})

test('keys that do not open are told why', async () => {
  const [mine, other] = [await newKeyPair(2048), await newKeyPair(2048)]
  const jwe = await seal('RSA-OAEP', 'SHA-1', mine.publicPEM, 'x')
  await assert.rejects(openJWE(jwe, other.privatePEM), /not of the pair/)
  await assert.rejects(openJWE('a.b', mine.privatePEM), /five parts/)
  await assert.rejects(openJWE(jwe.slice(0, -4) + 'AAAA', mine.privatePEM))
  assert.throws(() => privateKeyOf('nothing'), /no PEM/)
  assert.throws(() => privateKeyOf(mine.publicPEM), /public half/)
  assert.throws(() => privateKeyOf('-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA\n-----END ENCRYPTED PRIVATE KEY-----'), /password/)
  assert.throws(() => privateKeyOf('-----BEGIN EC PRIVATE KEY-----\nAA\n-----END EC PRIVATE KEY-----'), /RSA/)
})

test('what a form changes is a merge patch', () => {
  const a = { metadata: { name: 'a', labels: { x: '1', y: '2' } }, spec: { list: [1, 2], auth: { apikey: {} }, name: 'n' } }
  assert.equal(mergePatch(a, structuredClone(a)), undefined)
  const b = structuredClone(a)
  b.spec.list = [2]
  delete b.metadata.labels.y
  delete b.spec.auth.apikey
  b.spec.auth.oauth2 = {}
  assert.deepEqual(mergePatch(a, b), { metadata: { labels: { y: null } }, spec: { list: [2], auth: { apikey: null, oauth2: {} } } })
  put(b, ['metadata', 'labels', 'x'], undefined)
  put(b, ['spec', 'name'], '')
  put(b, ['spec', 'config', 'custom', 'k'], 'v')
  assert.deepEqual(b, { metadata: { name: 'a' }, spec: { list: [2], auth: { oauth2: {} }, config: { custom: { k: 'v' } } } })
  assert.deepEqual(mergePatch(a, b).metadata, { labels: null })
})

test('programs send what the console sent', async () => {
  const { createServer } = await import('node:http')
  const { mkdtempSync, rmSync, writeFileSync } = await import('node:fs')
  const { spawn } = await import('node:child_process')
  const seen = []
  const server = createServer((q, a) => { let body = ''; q.on('data', d => { body += d }); q.on('end', () => { seen.push([q.method, q.url, q.headers.authorization, q.headers['content-type'], q.headers['x-msg-key'], body]); a.end('answered\n') }) })
  await new Promise(done => server.listen(0, '127.0.0.1', done))
  const dir = mkdtempSync('/tmp/freshet-snippets-')
  const run = (...words) => new Promise((done, fail) => {
    const p = spawn(words[0], words.slice(1), { cwd: dir, env: { ...process.env, TOKEN: 't', BASE_URL: `http://127.0.0.1:${server.address().port}`, GOFLAGS: '' } })
    let out = ''
    for (const s of [p.stdout, p.stderr]) s.on('data', d => { out += d })
    p.on('error', fail)
    p.on('close', code => done([code, out]))
  })
  try {
    for (const r of [
      { method: 'POST', url: `/a b/'"$(id)?x=%20&y=z`.replace(' ', '%20'), contentType: 'application/json', headers: { 'X-Msg-Key': `it's "k"` }, body: '{"text":"a `tick`, a \\\\ and 𝄞\\u2028"}' },
      { method: 'GET', url: '/plain', headers: {} },
    ]) {
      const want = [r.method, r.url, 'Bearer t', r.contentType, r.headers['X-Msg-Key'], r.body == null ? '' : JSON.stringify(JSON.parse(r.body))]
      for (const [file, text, ...words] of [['p.py', python(r), 'python3', 'p.py'], ['main.go', golang(r), 'go', 'run', 'main.go']]) {
        assert.ok(!text.includes('Bearer t'), 'the token is in it')
        writeFileSync(`${dir}/${file}`, text)
        let done
        try { done = await run(...words) } catch { console.log(`NOT TESTED: there is no ${words[0]}`); continue }
        assert.deepEqual(done, [0, 'answered\n'], text)
        assert.deepEqual(seen.pop().map((x, i) => i === 1 ? decodeURIComponent(x) : x), want.map((x, i) => i === 1 ? decodeURIComponent(x) : x), text)
      }
    }
  } finally {
    server.close()
    rmSync(dir, { recursive: true })
  }
})
