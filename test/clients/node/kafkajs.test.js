// The registry client of the KafkaJS project. With every registration it also reads and
// writes the subject's compatibility level.
const assert = require('node:assert/strict')
const { test } = require('node:test')
const { COMPATIBILITY, SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry')
const { url, token } = require('./env')

const newRegistry = () => new SchemaRegistry({
  host: url,
  auth: { username: 'placeholder', password: token },
  retry: { retries: 0 },
})

test('avro', async () => {
  const registry = newRegistry()
  const schema = { type: 'record', name: 'Order', namespace: 'kafkajs', fields: [{ name: 'id', type: 'int' }] }
  const avro = { type: SchemaType.AVRO, schema: JSON.stringify(schema) }
  const { id } = await registry.register(avro, { subject: 'kafkajs-avro-value' })
  assert.deepEqual(await registry.register(avro, { subject: 'kafkajs-avro-value' }), { id })
  const data = await registry.encode(id, { id: 7 })
  assert.equal((await newRegistry().decode(data)).id, 7)
  assert.equal(await registry.getLatestSchemaId('kafkajs-avro-value'), id)
  assert.equal(await registry.getRegistryId('kafkajs-avro-value', 1), id)
  assert.equal(await registry.getRegistryIdBySchema('kafkajs-avro-value', avro), id)
})

test('the compatibility level of the subject must match the requested one', async () => {
  const registry = newRegistry()
  const avro = { type: SchemaType.AVRO, schema: '{"type":"record","name":"L","namespace":"kafkajs","fields":[]}' }
  await registry.register(avro, { subject: 'kafkajs-level-value', compatibility: COMPATIBILITY.BACKWARD })
  const full = { subject: 'kafkajs-level-value', compatibility: COMPATIBILITY.FULL }
  await assert.rejects(registry.register(avro, full), /[Cc]ompatibility/)
})

test('json', async () => {
  const registry = newRegistry()
  const schema = JSON.stringify({ type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] })
  const { id } = await registry.register({ type: SchemaType.JSON, schema }, { subject: 'kafkajs-json-value' })
  assert.deepEqual(await newRegistry().decode(await registry.encode(id, { id: 7 })), { id: 7 })
})

test('protobuf, with a reference', async () => {
  const registry = newRegistry()
  await registry.register(
    {
      type: SchemaType.PROTOBUF,
      schema: 'syntax = "proto3";\npackage kafkajs;\nmessage Inner {\n  int32 id = 1;\n}\n',
    },
    { subject: 'kafkajs-inner' },
  )
  const { id } = await registry.register(
    {
      type: SchemaType.PROTOBUF,
      schema: 'syntax = "proto3";\npackage kafkajs;\nimport "inner.proto";\nmessage Outer {\n  Inner inner = 1;\n}\n',
      references: [{ name: 'inner.proto', subject: 'kafkajs-inner', version: 1 }],
    },
    { subject: 'kafkajs-outer-value' },
  )
  const value = await newRegistry().decode(await registry.encode(id, { inner: { id: 7 } }))
  assert.equal(value.inner.id, 7)
})
