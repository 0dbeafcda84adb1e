// Unit tests of the pages of topics and schemas: Avro, Protobuf, the tail, names, commands.
import { test } from 'node:test'
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'

// The browser APIs that modules use when they are loaded.
globalThis.HTMLElement ??= class {}
globalThis.customElements ??= { define() {} }
globalThis.location ??= { origin: 'http://x', pathname: '/console/', search: '', hostname: 'x' }
globalThis.document ??= {
  createElement: () => ({}),
  createTreeWalker: () => ({}),
  createComment: () => ({}),
  addEventListener() {},
}
globalThis.requestAnimationFrame ??= f => setTimeout(f)
globalThis.matchMedia ??= () => ({ matches: false, addEventListener() {} })
globalThis.setInterval = () => 0

const { decode, encode } = await import('../static/lib/avro.js')
const { parseSchema, sample } = await import('../static/lib/avroschema.js')
const { Decoder } = await import('../static/lib/decoder.js')
const { readPairs } = await import('../static/lib/fields.js')
const { freshet } = await import('../static/lib/freshetcommand.js')
const { kafkaName, namespaceOfSubject, parseTopic } = await import('../static/lib/names.js')
const {
  curlProduce, payloadBytes, pretty, preview, produceHeaders, schemaIdOf, textOf, textOfTruncated,
} = await import('../static/lib/payload.js')
const { decodeProto } = await import('../static/lib/proto.js')
const { parseProto } = await import('../static/lib/protoschema.js')
const { Ring, addProgress, events, maxRows, received } = await import('../static/lib/tail.js')
const { explainId } = await import('../static/pages/playground.js')
const { reasons } = await import('../static/pages/schemachanges.js')

const plain = v => JSON.parse(JSON.stringify(v))
const utf8 = text => new TextEncoder().encode(text)
const schemaOf = value => parseSchema(JSON.stringify(value))
const roundTrip = (schema, value) => plain(decode(schemaOf(schema), encode(schemaOf(schema), value)).value)

test('Avro examples of the specification', () => {
  const record = schemaOf({
    type: 'record', name: 'test', fields: [{ name: 'a', type: 'long' }, { name: 'b', type: 'string' }],
  })
  const encoded = [0x36, 0x06, 0x66, 0x6f, 0x6f]
  assert.deepEqual([...encode(record, { a: 27, b: 'foo' })], encoded)
  assert.deepEqual(plain(decode(record, Uint8Array.from(encoded))), { value: { a: 27, b: 'foo' }, rest: 0 })
  assert.deepEqual([...encode(schemaOf({ type: 'array', items: 'long' }), [3, 27])], [4, 6, 54, 0])
  assert.deepEqual([...encode(schemaOf(['null', 'string']), null)], [0])
  assert.deepEqual([...encode(schemaOf(['null', 'string']), 'a')], [2, 2, 0x61])
  for (const [n, bytes] of [[0, [0]], [-1, [1]], [1, [2]], [-64, [0x7f]], [64, [0x80, 1]]]) {
    assert.deepEqual([...encode(schemaOf('long'), n)], bytes)
  }
  // a block with its size in bytes
  const block = Uint8Array.of(3, 4, 6, 54, 0)
  assert.deepEqual(plain(decode(schemaOf({ type: 'array', items: 'int' }), block).value), [3, 27])
})

test('Avro values survive a round trip', () => {
  const schema = {
    type: 'record',
    name: 'x.R',
    fields: [
      { name: 'flag', type: 'boolean' },
      { name: 'f', type: 'float' },
      { name: 'd', type: 'double' },
      { name: 'raw', type: 'bytes' },
      { name: 'm', type: { type: 'map', values: 'int' } },
      { name: 'e', type: { type: 'enum', name: 'E', symbols: ['A', 'B'] } },
      { name: 'fix', type: { type: 'fixed', name: 'F', size: 2 } },
      { name: 'next', type: ['null', 'R'], default: null },
      { name: 'again', type: 'x.E', default: 'A' },
      { name: 'text', type: ['int', 'string'] },
    ],
  }
  const next = {
    flag: false, f: 0, d: 0, raw: '', m: {}, e: 'A', fix: 'zz', next: null, again: 'B', text: 5,
  }
  const value = {
    flag: true, f: 1.5, d: -2.25, raw: '\x00\xff', m: { 'ä': 7 }, e: 'B', fix: 'ab', next, again: 'A', text: 'ß',
  }
  assert.deepEqual(roundTrip(schema, value), value)
  const { again, ...withoutDefault } = value
  assert.equal(again, 'A')
  assert.deepEqual(roundTrip(schema, { ...withoutDefault, next: { 'x.R': next } }), value)
  const max = 2n ** 63n - 1n
  assert.equal(decode(schemaOf('long'), encode(schemaOf('long'), max)).value, max)
  const s = schemaOf(schema)
  assert.doesNotThrow(() => encode(s, sample(s)))
})

test('Avro with references', () => {
  const invoice = { type: 'record', name: 'shop.Invoice', fields: [{ name: 'to', type: 'shop.Address' }] }
  const address = {
    type: 'record', name: 'Address', namespace: 'shop', fields: [{ name: 'city', type: 'string' }],
  }
  const s = parseSchema(JSON.stringify(invoice), [JSON.stringify(address)])
  assert.deepEqual(plain(decode(s, encode(s, { to: { city: 'Ulm' } })).value), { to: { city: 'Ulm' } })
  assert.throws(() => parseSchema('"shop.Nowhere2"'), /does not define/)
})

test('errors of Avro name the field', () => {
  const item = { type: 'record', name: 'I', fields: [{ name: 'n', type: 'int' }] }
  const s = schemaOf({ type: 'record', name: 'O', fields: [{ name: 'items', type: { type: 'array', items: item } }] })
  for (const [value, want] of [
    [{ items: [{ n: 1 }, { n: 'x' }] }, /items\[1\]\.n: string "x" is not of type int/],
    [{}, /items: the field is missing/],
    [{ items: [], more: 1 }, /more: O has no such field/],
    [[], /an array, but O is a record/],
    [{ items: [{ n: 2 ** 31 }] }, /is not of type int/],
  ]) {
    assert.throws(() => encode(s, value), want)
  }
  assert.throws(() => decode(s, Uint8Array.of(2)), /ends too early/)
  assert.throws(() => decode(schemaOf('string'), Uint8Array.of(4, 0xff, 0xfe)))
  assert.throws(() => decode(schemaOf(['null']), Uint8Array.of(8)), /no branch/)
  // an array of 10^9 nulls in five bytes
  const nulls = Uint8Array.of(0x80, 0x94, 0xeb, 0xdc, 0x07, 0)
  assert.throws(() => decode(schemaOf({ type: 'array', items: 'null' }), nulls), /too long/)
  const deep = schemaOf({ type: 'record', name: 'D', fields: [{ name: 'd', type: ['null', 'D'] }] })
  assert.throws(() => decode(deep, new Uint8Array(100000).fill(2)), /too deeply/)
  const map = schemaOf({ type: 'map', values: 'int' })
  const decoded = decode(map, encode(map, JSON.parse('{"__proto__":1}'))).value
  assert.equal(Object.getPrototypeOf(decoded), null)
})

const emailProto = `syntax = "proto3";
package mail;

import "other.proto";

message Email {
  string to = 1;
  repeated string tags = 2;
  map<string, int32> counts = 3;
  Kind kind = 4;
  repeated int64 numbers = 5;
  oneof body {
    Part part = 6;
    bytes raw = 7;
  }
  reserved 9, 10 to 12;
  double d = 8 [deprecated = true];
  enum Kind {
    PLAIN = 0;
    HTML = 1;
  }
  message Part {
    sint32 n = 1;
  }
}
message Second {
  bool ok = 1;
}
`

test('Protobuf is decoded with its schema', () => {
  const { top, types } = parseProto(emailProto)
  assert.deepEqual(top.map(m => m.name), ['mail.Email', 'mail.Second'])
  assert.ok(types.has('mail.Email.Part'))
  const data = [
    0x0a, 1, 0x61, // to
    0x12, 1, 0x78, 0x12, 1, 0x79, // tags
    0x1a, 5, 0x0a, 1, 0x6e, 0x10, 7, // counts
    0x20, 1, // kind
    0x2a, 3, 1, 0xac, 2, // numbers, packed
    0x32, 2, 0x08, 3, // part
    0x41, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, // d
    0x98, 0x06, 5, // an unknown field
  ]
  const want = {
    to: 'a', tags: ['x', 'y'], counts: { n: 7 }, kind: 'HTML', numbers: [1, 300], part: { n: -2 }, d: 1, '#99': 5,
  }
  assert.deepEqual(plain(decodeProto([emailProto], Uint8Array.from([0, ...data]))), want)
  assert.deepEqual(plain(decodeProto([emailProto], Uint8Array.of(2, 2, 8, 1))), { ok: true })
  assert.deepEqual(plain(decodeProto([emailProto], Uint8Array.of(4, 0, 0, 8, 3))), { n: -2 })
  assert.throws(() => decodeProto([emailProto], Uint8Array.of(0, 0x0a, 200)), /ends too early/)
  assert.throws(() => decodeProto([emailProto], Uint8Array.of(2, 18)), /no such message/)
})

test('events of a stream', async () => {
  async function* lines() {
    yield* ['retry: 1000', '', ':', '']
    yield* ['event: message', 'id: CAgQ', 'data: {"a":1}', '']
    yield* ['event: error', 'data: {"status":404,', 'data: "reason":"gone"}', '']
  }
  const got = []
  for await (const e of events(lines())) got.push(e)
  assert.deepEqual(got, [
    { event: 'message', data: '{"a":1}', id: 'CAgQ' },
    { event: 'error', data: '{"status":404,\n"reason":"gone"}', id: 'CAgQ' },
  ])
})

test('the tail keeps a limited number of messages', () => {
  let now = 0
  const ring = new Ring(() => now)
  for (let i = 0; i < 1500; i++) ring.add({ i })
  assert.equal(ring.rows.length, maxRows)
  assert.equal(ring.skipped, 500, 'a burst beyond the limit')
  assert.equal(ring.rows[0].i, 999)
  now = 1000
  for (let i = 0; i < 150; i++) ring.add({ i: 2000 + i })
  assert.equal(ring.skipped, 550, 'a hundred per second')
  assert.equal(ring.rows.length, maxRows)
  now = 60000
  ring.pause()
  for (let i = 0; i < 20; i++) ring.add({ i: 3000 + i }, m => m.i % 2 === 0)
  assert.equal(ring.rows[0].i, 2099, 'rows do not change during a pause')
  assert.deepEqual([ring.held.length, ring.filtered], [10, 10])
  ring.resume()
  assert.equal(ring.rows[0].i, 3018)
  assert.equal(ring.rows.length, maxRows)
  assert.equal(ring.seen, 1670)
})

test('messages of several partitions are in the order of their publish times', () => {
  const ring = new Ring()
  for (const publishTime of [10, 30, 20, 30, 5, 40]) ring.add({ publishTime })
  assert.deepEqual(ring.rows.map(m => m.publishTime), [40, 30, 30, 20, 10, 5])
})

test('progress of a filter adds up over connections', () => {
  const first = { scanned: 5, matched: 1, failed: 0 }
  assert.deepEqual(addProgress(null, first), first)
  assert.deepEqual(addProgress(first, { scanned: 3, matched: 1, failed: 2, failure: 'no such key: total' }),
    { scanned: 8, matched: 2, failed: 2, failure: 'no such key: total' })
})

test('messages of the API', () => {
  const m = received({
    messageId: 'A', messageStringId: '1:2:-1:0', payload: 'AAE=', encoding: 'base64', payloadSize: 9, publishTime: 5,
    properties: { a: 'b' },
  }, 7)
  assert.deepEqual([[...m.bytes], m.size, m.truncated, m.name], [[0, 1], 9, true, '1:2:-1:0'])
  assert.equal(schemaIdOf(Uint8Array.of(0, 0, 0, 1, 2, 9)), 258)
  assert.equal(schemaIdOf(Uint8Array.of(123, 0, 0, 1, 2, 9)), 0)
  assert.equal(textOf(Uint8Array.of(0xe2, 0x82)), null)
  assert.equal(textOfTruncated(Uint8Array.of(0x61, 0xe2, 0x82)), 'a')
  assert.equal(textOf(Uint8Array.of(0, 1)), null)
  assert.equal(pretty({ a: 2n ** 60n, b: [], c: { d: 'x"' } }),
    '{\n  "a": 1152921504606846976,\n  "b": [],\n  "c": {\n    "d": "x\\""\n  }\n}')
  assert.throws(() => payloadBytes('{', 'json'), /not JSON/)
})

test('payloads are decoded with the topic’s schema and with the registry’s', async () => {
  const outer = '{"type":"record","name":"R","fields":[{"name":"s","type":"b.S"}]}'
  const inner = '{"type":"record","name":"b.S","fields":[{"name":"n","type":"int"}]}'
  const responses = {
    '/a/schemas/public/default/t/schema/3': { type: 'AVRO', data: '"string"' },
    '/r/schemas/ids/7': { schema: outer, references: [{ name: 'b.S', subject: 's', version: 2 }] },
    '/r/subjects/s/versions/2': { schema: inner },
    '/r/schemas/ids/8': { schema: '{}', schemaType: 'JSON' },
  }
  const client = { admin: '/a', registry: '/r', get: async url => responses[url] ?? assert.fail(url) }
  const d = new Decoder(client, { tenant: 'public', namespace: 'default', topic: 't' })
  assert.equal((await d.decode({ bytes: Uint8Array.of(2, 0x61), schemaVersion: 3 })).value, 'a')
  assert.equal((await d.decode({ bytes: Uint8Array.of(0, 0, 0, 0, 7, 84) })).text, '{\n  "s": {\n    "n": 42\n  }\n}')
  assert.deepEqual((await d.decode({ bytes: Uint8Array.of(0, 0, 0, 0, 8, ...utf8('[1]')) })).value, [1])
  assert.equal(await d.decode({ bytes: utf8('plain') }), null)
  const tooLong = { bytes: Uint8Array.of(2, 0x61, 0x61), schemaVersion: 3 }
  await assert.rejects(d.decode(tooLong), /1 byte after the value/)
})

// A shell function in place of curl that prints the body.
const fakeCurl = `curl() {
  for a in "$@"; do
    [ "$p" = --data-binary ] && { [ "$a" = @- ] && cat || printf %s "$a"; }
    p=$a
  done
}
TOKEN=t FRESHET_SERVER=http://h
`

test('the command of a message keeps any payload and key', () => {
  for (const [bytes, key] of [
    [utf8(`it's "$HOME" \`id\`\n`), 'k 1'],
    [Uint8Array.of(0, 255, 10, 39), 'ü'],
    [utf8('@/etc/passwd'), ''],
  ]) {
    const text = curlProduce('/t/message', { bytes, key, properties: { Name: `o'x` } })
    const out = execFileSync('bash', ['-c', fakeCurl + text])
    assert.deepEqual([...out], [...bytes], text)
  }
  assert.deepEqual(produceHeaders({ key: 'ü', properties: {} }),
    { 'X-Msg-Partition-Key': 'w7w=', 'X-Msg-Partition-Key-Encoding': 'base64' })
  assert.deepEqual(produceHeaders({ key: '', properties: {} }), {})
  assert.equal(preview({ bytes: Uint8Array.of(0, 1), isNull: false }), '00 01')
})

test('names', () => {
  for (const [text, want] of [
    ['orders', 'public/default/orders'],
    ['eu.shop.returns', 'eu/shop/returns'],
    ['eu.shop.a.b', 'eu/shop/a.b'],
    ['a.b', 'public/default/a.b'],
    ['persistent://x/y/z/w', 'x/y/z/w'],
    ['.a.b', 'public/default/.a.b'],
  ]) {
    const t = parseTopic(text)
    assert.equal(`${t.tenant}/${t.namespace}/${t.topic}`, want)
  }
  assert.equal(kafkaName({ tenant: 'public', namespace: 'default', topic: 'a' }), 'a')
  assert.deepEqual(readPairs('a=b=c\n\n x = y '), { a: 'b=c', x: 'y' })
  assert.throws(() => readPairs('nothing'), /name=value/)
  assert.equal(namespaceOfSubject('a.b.C'), 'a/b')
  assert.equal(namespaceOfSubject('orders-value'), 'public/default')
})

test('message ids are explained', () => {
  const { rows, fields } = explainId('8:0:-1:0', 'CAgQACAAMAE=')
  assert.deepEqual(rows.map(r => r[1]), ['8', '0', '-1', '0'])
  assert.deepEqual(fields, [['ledgerId', '8'], ['entryId', '0'], ['batch_index', '0'], ['batch_size', '1']])
})

test('reasons of a compatibility check', () => {
  const messages = [
    `{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'x' at path '/fields/1' in the new ` +
      `schema has no default value', additionalInfo:'x'}`,
    `{oldSchemaVersion: 1}`,
    `{errorType:"FIELD_KIND_CHANGED", description:"The kind \\"a\\" changed"}`,
  ]
  assert.deepEqual(reasons(messages).map(r => r.type), ['READER_FIELD_MISSING_DEFAULT_VALUE', 'FIELD_KIND_CHANGED'])
})

test('requests to a cluster as freshet commands', () => {
  const admin = '/admin/v2/persistent/public/default/o'
  const messages = '/admin/rest/topics/v1'
  const groups = '/rest-stream/admin/v1/groups'
  const offsets = '{"offsets":[{"topic_name":"o","position":"earliest"}]}'
  const versions = '{"from":{"subject":"s","version":1},"to":{"subject":"s","version":2}}'
  for (const [method, url, body, want] of [
    ['GET', '/rest-stream/admin/v1/topics', null, 'topic list'],
    ['GET', `${messages}/public/default/o/tail?from=earliest`, null, 'tail o --from earliest'],
    ['POST', `${messages}/eu/shop/o/message`, 'a b', `produce eu/shop/o 'a b'`],
    ['PUT', `${admin}/partitions`, '4', 'topic create o -p 4'],
    ['DELETE', `${admin}?force=true`, null, 'topic delete o --force'],
    ['POST', `${admin}/subscription/s/resetcursor`, '"earliest"', 'subscription reset o s --to earliest'],
    ['PUT', `${messages}/public/default/o/s/message`, '1:2:-1:0', 'ack o s 1:2:-1:0'],
    ['DELETE', '/stream/subjects/o-value/versions/2?permanent=true', null, 'schema delete o-value 2 --permanent'],
    ['GET', '/stream/subjects', null, 'schema list'],
    ['PUT', '/stream/config/o-value', '{"compatibility":"FULL"}', 'schema level o-value FULL'],
    ['PUT', `${groups}/g/offsets?tenant=public`, offsets, 'group reset g --topic o --to earliest'],
    ['POST', '/stream/registry/v1alpha1/diff', versions, 'schema diff s 1 2'],
  ]) {
    const command = freshet({ method, url: `/clusters/acme/orders${url}`, body })
    assert.equal(command, `freshet ${want} -n acme --cluster orders`)
  }
  assert.equal(freshet({ method: 'GET', url: '/readyz' }), '')
})
