// Units of the pages of topics and schemas: Avro, Protobuf, the tail, names, commands.
import { test } from 'node:test'
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'

// What widgets and store ask of a browser when they are loaded.
globalThis.HTMLElement ??= class {}
globalThis.customElements ??= { define() {} }
globalThis.location ??= { origin: 'http://x', pathname: '/console/', search: '', hostname: 'x' }
globalThis.document ??= { createElement: () => ({}), createTreeWalker: () => ({}), createComment: () => ({}), addEventListener() {} }
globalThis.requestAnimationFrame ??= f => setTimeout(f)
globalThis.matchMedia ??= () => ({ matches: false, addEventListener() {} })
globalThis.setInterval = () => 0

const { decode, encode, parseSchema, sample } = await import('../static/lib/avro.js')
const { decodeProto, parseProto } = await import('../static/lib/proto.js')
const { Ring, events, mostRows, received } = await import('../static/lib/tail.js')
const { Decoder, bytesOf, curlProduce, idInFront, pretty, preview, produceHeaders, textOf, textOfCut } = await import('../static/lib/payload.js')
const { parseTopic, readPairs, streamName } = await import('../static/lib/plane.js')
const { freshet } = await import('../static/lib/snippets.js')
const { explainId } = await import('../static/pages/subscriptions.js')
const { reasons } = await import('../static/pages/subject.js')
const { place } = await import('../static/pages/schemas.js')

const plain = v => JSON.parse(JSON.stringify(v))
const round = (schema, value) => plain(decode(parseSchema(JSON.stringify(schema)), encode(parseSchema(JSON.stringify(schema)), value)).value)

test('Avro as the specification has it', () => {
  const record = parseSchema('{"type":"record","name":"test","fields":[{"name":"a","type":"long"},{"name":"b","type":"string"}]}')
  assert.deepEqual([...encode(record, { a: 27, b: 'foo' })], [0x36, 0x06, 0x66, 0x6f, 0x6f])
  assert.deepEqual(plain(decode(record, Uint8Array.of(0x36, 0x06, 0x66, 0x6f, 0x6f))), { value: { a: 27, b: 'foo' }, rest: 0 })
  assert.deepEqual([...encode(parseSchema('{"type":"array","items":"long"}'), [3, 27])], [4, 6, 54, 0])
  assert.deepEqual([...encode(parseSchema('["null","string"]'), null)], [0])
  assert.deepEqual([...encode(parseSchema('["null","string"]'), 'a')], [2, 2, 0x61])
  for (const [n, bytes] of [[0, [0]], [-1, [1]], [1, [2]], [-64, [0x7f]], [64, [0x80, 1]]]) assert.deepEqual([...encode(parseSchema('"long"'), n)], bytes)
  // a block that says how long it is
  assert.deepEqual(plain(decode(parseSchema('{"type":"array","items":"int"}'), Uint8Array.of(3, 4, 6, 54, 0)).value), [3, 27])
})

test('Avro there and back', () => {
  const schema = { type: 'record', name: 'x.R', fields: [
    { name: 'flag', type: 'boolean' }, { name: 'f', type: 'float' }, { name: 'd', type: 'double' }, { name: 'raw', type: 'bytes' }, { name: 'm', type: { type: 'map', values: 'int' } }, { name: 'e', type: { type: 'enum', name: 'E', symbols: ['A', 'B'] } },
    { name: 'fix', type: { type: 'fixed', name: 'F', size: 2 } }, { name: 'next', type: ['null', 'R'], default: null }, { name: 'again', type: 'x.E', default: 'A' }, { name: 'text', type: ['int', 'string'] } ] }
  const value = { flag: true, f: 1.5, d: -2.25, raw: '\x00\xff', m: { 'ä': 7 }, e: 'B', fix: 'ab', next: { flag: false, f: 0, d: 0, raw: '', m: {}, e: 'A', fix: 'zz', next: null, again: 'B', text: 5 }, again: 'A', text: 'ß' }
  assert.deepEqual(round(schema, value), value)
  const { again, ...withoutDefault } = value
  assert.equal(again, 'A')
  assert.deepEqual(round(schema, { ...withoutDefault, next: { 'x.R': value.next } }), value)
  assert.equal(decode(parseSchema('"long"'), encode(parseSchema('"long"'), 2n ** 63n - 1n)).value, 2n ** 63n - 1n)
  const s = parseSchema(JSON.stringify(schema))
  assert.doesNotThrow(() => encode(s, sample(s)))
})

test('Avro with references', () => {
  const s = parseSchema('{"type":"record","name":"shop.Invoice","fields":[{"name":"to","type":"shop.Address"}]}', ['{"type":"record","name":"Address","namespace":"shop","fields":[{"name":"city","type":"string"}]}'])
  assert.deepEqual(plain(decode(s, encode(s, { to: { city: 'Ulm' } })).value), { to: { city: 'Ulm' } })
  assert.throws(() => parseSchema('"shop.Nowhere2"'), /does not define/)
})

test('Avro that is wrong is told where', () => {
  const s = parseSchema('{"type":"record","name":"O","fields":[{"name":"items","type":{"type":"array","items":{"type":"record","name":"I","fields":[{"name":"n","type":"int"}]}}}]}')
  for (const [value, want] of [[{ items: [{ n: 1 }, { n: 'x' }] }, /items\[1\]\.n: string "x" is no int/], [{}, /items: it is missing/], [{ items: [], more: 1 }, /more: O has no such field/], [[], /an array, but O is a record/], [{ items: [{ n: 2 ** 31 }] }, /is no int/]]) assert.throws(() => encode(s, value), want)
  assert.throws(() => decode(s, Uint8Array.of(2)), /ends too early/)
  assert.throws(() => decode(parseSchema('"string"'), Uint8Array.of(4, 0xff, 0xfe)))
  assert.throws(() => decode(parseSchema('["null"]'), Uint8Array.of(8)), /no branch/)
  // a thousand million nothings in five bytes
  assert.throws(() => decode(parseSchema('{"type":"array","items":"null"}'), Uint8Array.of(0x80, 0x94, 0xeb, 0xdc, 0x07, 0)), /too long/)
  const deep = parseSchema('{"type":"record","name":"D","fields":[{"name":"d","type":["null","D"]}]}')
  assert.throws(() => decode(deep, new Uint8Array(100000).fill(2)), /too deeply/)
  assert.equal(Object.getPrototypeOf(decode(parseSchema('{"type":"map","values":"int"}'), encode(parseSchema('{"type":"map","values":"int"}'), JSON.parse('{"__proto__":1}'))).value), null)
})

test('Protobuf by its schema', () => {
  const text = 'syntax = "proto3";\npackage mail;\n\nimport "other.proto";\n\nmessage Email {\n  string to = 1;\n  repeated string tags = 2;\n  map<string, int32> counts = 3;\n  Kind kind = 4;\n  repeated int64 numbers = 5;\n  oneof body {\n    Part part = 6;\n    bytes raw = 7;\n  }\n  reserved 9, 10 to 12;\n  double d = 8 [deprecated = true];\n  enum Kind {\n    PLAIN = 0;\n    HTML = 1;\n  }\n  message Part {\n    sint32 n = 1;\n  }\n}\nmessage Second {\n  bool ok = 1;\n}\n'
  const { top, types } = parseProto(text)
  assert.deepEqual(top.map(m => m.name), ['mail.Email', 'mail.Second'])
  assert.ok(types.has('mail.Email.Part'))
  const data = [0x0a, 1, 0x61, 0x12, 1, 0x78, 0x12, 1, 0x79, 0x1a, 5, 0x0a, 1, 0x6e, 0x10, 7, 0x20, 1, 0x2a, 3, 1, 0xac, 2, 0x32, 2, 0x08, 3, 0x41, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x98, 0x06, 5]
  assert.deepEqual(plain(decodeProto([text], Uint8Array.from([0, ...data]))), { to: 'a', tags: ['x', 'y'], counts: { n: 7 }, kind: 'HTML', numbers: [1, 300], part: { n: -2 }, d: 1, '#99': 5 })
  assert.deepEqual(plain(decodeProto([text], Uint8Array.of(2, 2, 8, 1))), { ok: true })
  assert.deepEqual(plain(decodeProto([text], Uint8Array.of(4, 0, 0, 8, 3))), { n: -2 })
  assert.throws(() => decodeProto([text], Uint8Array.of(0, 0x0a, 200)), /ends too early/)
  assert.throws(() => decodeProto([text], Uint8Array.of(2, 18)), /no such message/)
})

test('events of a stream', async () => {
  async function* lines() { yield* ['retry: 1000', '', ':', '', 'event: message', 'id: CAgQ', 'data: {"a":1}', '', 'event: error', 'data: {"status":404,', 'data: "reason":"gone"}', ''] }
  const got = []
  for await (const e of events(lines())) got.push(e)
  assert.deepEqual(got, [{ event: 'message', data: '{"a":1}', id: 'CAgQ' }, { event: 'error', data: '{"status":404,\n"reason":"gone"}', id: 'CAgQ' }])
})

test('what the tail keeps is bounded', () => {
  let now = 0
  const ring = new Ring(() => now)
  for (let i = 0; i < 1500; i++) ring.add({ i })
  assert.equal(ring.rows.length, mostRows)
  assert.equal(ring.skipped, 500, 'a burst beyond what fits')
  assert.equal(ring.rows[0].i, 999)
  now = 1000
  for (let i = 0; i < 150; i++) ring.add({ i: 2000 + i })
  assert.equal(ring.skipped, 550, 'a hundred a second')
  assert.equal(ring.rows.length, mostRows)
  now = 60000
  ring.pause()
  for (let i = 0; i < 20; i++) ring.add({ i: 3000 + i }, m => m.i % 2 === 0)
  assert.equal(ring.rows[0].i, 2099, 'paused rows stand still')
  assert.deepEqual([ring.held.length, ring.other], [10, 10])
  ring.resume()
  assert.equal(ring.rows[0].i, 3018)
  assert.equal(ring.rows.length, mostRows)
  assert.equal(ring.seen, 1670)
})

test('messages of the API', () => {
  const m = received({ messageId: 'A', messageStringId: '1:2:-1:0', payload: 'AAE=', encoding: 'base64', payloadSize: 9, publishTime: 5, properties: { a: 'b' } }, 7)
  assert.deepEqual([[...m.bytes], m.size, m.cut, m.name], [[0, 1], 9, true, '1:2:-1:0'])
  assert.equal(idInFront(Uint8Array.of(0, 0, 0, 1, 2, 9)), 258)
  assert.equal(idInFront(Uint8Array.of(123, 0, 0, 1, 2, 9)), 0)
  assert.equal(textOf(Uint8Array.of(0xe2, 0x82)), null)
  assert.equal(textOfCut(Uint8Array.of(0x61, 0xe2, 0x82)), 'a')
  assert.equal(textOf(Uint8Array.of(0, 1)), null)
  assert.equal(pretty({ a: 2n ** 60n, b: [], c: { d: 'x"' } }), '{\n  "a": 1152921504606846976,\n  "b": [],\n  "c": {\n    "d": "x\\""\n  }\n}')
  assert.throws(() => bytesOf('{', 'json'), /not JSON/)
})

test('decoded by the topic’s schema and by the registry’s', async () => {
  const at = { admin: '/a', registry: '/r', get: async url => ({
    '/a/schemas/public/default/t/schema/3': { type: 'AVRO', data: '"string"' }, '/r/schemas/ids/7': { schema: '{"type":"record","name":"R","fields":[{"name":"s","type":"b.S"}]}', references: [{ name: 'b.S', subject: 's', version: 2 }] },
    '/r/subjects/s/versions/2': { schema: '{"type":"record","name":"b.S","fields":[{"name":"n","type":"int"}]}' }, '/r/schemas/ids/8': { schema: '{}', schemaType: 'JSON' },
  })[url] ?? assert.fail(url) }
  const d = new Decoder(at, { tenant: 'public', namespace: 'default', topic: 't' })
  assert.equal((await d.decode({ bytes: Uint8Array.of(2, 0x61), schemaVersion: 3 })).value, 'a')
  assert.equal((await d.decode({ bytes: Uint8Array.of(0, 0, 0, 0, 7, 84) })).text, '{\n  "s": {\n    "n": 42\n  }\n}')
  assert.deepEqual((await d.decode({ bytes: Uint8Array.of(0, 0, 0, 0, 8, ...new TextEncoder().encode('[1]')) })).value, [1])
  assert.equal(await d.decode({ bytes: new TextEncoder().encode('plain') }), null)
  await assert.rejects(d.decode({ bytes: Uint8Array.of(2, 0x61, 0x61), schemaVersion: 3 }), /left over/)
})

test('a message as a command, whatever is in it', () => {
  for (const [bytes, key] of [[new TextEncoder().encode(`it's "$HOME" \`id\`\n`), 'k 1'], [Uint8Array.of(0, 255, 10, 39), 'ü'], [new TextEncoder().encode('@/etc/passwd'), '']]) {
    const text = curlProduce('/t/message', { bytes, key, properties: { Name: `o'x` } })
    const out = execFileSync('bash', ['-c', `curl() { for a in "$@"; do [ "$p" = --data-binary ] && { [ "$a" = @- ] && cat || printf %s "$a"; }; p=$a; done; }; TOKEN=t BASE_URL=http://h; ${text}`])
    assert.deepEqual([...out], [...bytes], text)
  }
  assert.deepEqual(produceHeaders({ key: 'ü', properties: {} }), { 'X-Msg-Partition-Key': 'w7w=', 'X-Msg-Partition-Key-Encoding': 'base64' })
  assert.deepEqual(produceHeaders({ key: '', properties: {} }), {})
  assert.equal(preview({ bytes: Uint8Array.of(0, 1), isNull: false }), '00 01')
})

test('names', () => {
  for (const [text, want] of [['orders', 'public/default/orders'], ['eu.shop.returns', 'eu/shop/returns'], ['eu.shop.a.b', 'eu/shop/a.b'], ['a.b', 'public/default/a.b'], ['persistent://x/y/z/w', 'x/y/z/w'], ['.a.b', 'public/default/.a.b']]) { const t = parseTopic(text); assert.equal(`${t.tenant}/${t.namespace}/${t.topic}`, want) }
  assert.equal(streamName({ tenant: 'public', namespace: 'default', topic: 'a' }), 'a')
  assert.deepEqual(readPairs('a=b=c\n\n x = y '), { a: 'b=c', x: 'y' })
  assert.throws(() => readPairs('nothing'), /name=value/)
  assert.equal(place('a.b.C'), 'a/b')
  assert.equal(place('orders-value'), 'public/default')
})

test('ids explained', () => {
  const { rows, fields } = explainId('8:0:-1:0', 'CAgQACAAMAE=')
  assert.deepEqual(rows.map(r => r[1]), ['8', '0', '-1', '0'])
  assert.deepEqual(fields, [['ledgerId', '8'], ['entryId', '0'], ['batch_index', '0'], ['batch_size', '1']])
})

test('reasons of a check', () => {
  assert.deepEqual(reasons([`{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'x' at path '/fields/1' in the new schema has no default value', additionalInfo:'x'}`, `{oldSchemaVersion: 1}`, `{errorType:"FIELD_KIND_CHANGED", description:"The kind \\"a\\" changed"}`]).map(r => r.type), ['READER_FIELD_MISSING_DEFAULT_VALUE', 'FIELD_KIND_CHANGED'])
})

test('calls on a cluster as freshet commands', () => {
  const c = '/clusters/acme/orders', w = ' -n acme --cluster orders'
  for (const [method, url, body, want] of [
    ['GET', '/rest-stream/admin/v1/topics', null, 'topic list'], ['GET', '/admin/rest/topics/v1/public/default/o/tail?from=earliest', null, 'tail o --from earliest'], ['POST', '/admin/rest/topics/v1/eu/shop/o/message', 'a b', `produce eu/shop/o 'a b'`],
    ['PUT', '/admin/v2/persistent/public/default/o/partitions', '4', 'topic create o -p 4'], ['DELETE', '/admin/v2/persistent/public/default/o?force=true', null, 'topic delete o --force'], ['POST', '/admin/v2/persistent/public/default/o/subscription/s/resetcursor', '"earliest"', 'subscription reset o s --to earliest'],
    ['PUT', '/admin/rest/topics/v1/public/default/o/s/message', '1:2:-1:0', 'ack o s 1:2:-1:0'], ['DELETE', '/stream/subjects/o-value/versions/2?permanent=true', null, 'schema delete o-value 2 --permanent'], ['GET', '/stream/subjects', null, 'schema list'], ['PUT', '/stream/config/o-value', '{"compatibility":"FULL"}', 'schema level o-value FULL'],
    ['PUT', '/rest-stream/admin/v1/groups/g/offsets?tenant=public', '{"offsets":[{"topic_name":"o","position":"earliest"}]}', 'group reset g --topic o --to earliest'], ['POST', '/stream/registry/v1alpha1/diff', '{"from":{"subject":"s","version":1},"to":{"subject":"s","version":2}}', 'schema diff s 1 2'],
  ]) assert.equal(freshet({ method, url: c + url, body }), `freshet ${want}${w}`)
  assert.equal(freshet({ method: 'GET', url: '/readyz' }), '')
})
