// Confluent's registry client and serializers for Node.
const assert = require('node:assert/strict')
const { test } = require('node:test')
const {
  AvroDeserializer, AvroSerializer, JsonDeserializer, JsonSerializer,
  ProtobufSerializer, SchemaRegistryClient, SerdeType,
} = require('@confluentinc/schemaregistry')
const { create } = require('@bufbuild/protobuf')
const { TimestampSchema } = require('@bufbuild/protobuf/wkt')
const { url, token } = require('./env')

const newClient = () => new SchemaRegistryClient({
  baseURLs: [url],
  basicAuthCredentials: { credentialsSource: 'USER_INFO', userInfo: `placeholder:${token}` },
  maxRetries: 0,
})

test('client', async () => {
  const client = newClient()
  const subject = 'confluent-js-client'
  const one = { schemaType: 'AVRO', schema: '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}' }
  const two = {
    schemaType: 'AVRO',
    schema: '{"type":"record","name":"R","fields":[{"name":"a","type":"string"},' +
      '{"name":"b","type":"int","default":0}]}',
  }
  const bad = { schemaType: 'AVRO', schema: '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}' }
  const id = await client.register(subject, one)
  assert.equal((await client.getBySubjectAndId(subject, id)).schema, one.schema)
  assert.equal(await client.getId(subject, one), id)
  assert.equal(await client.testCompatibility(subject, 1, two), true)
  assert.equal(await client.testSubjectCompatibility(subject, bad), false)
  await assert.rejects(client.register(subject, bad), (e) => e.errorCode === 409)
  const second = await client.register(subject, two, true)
  assert.notEqual(second, id)
  const latest = await client.getLatestSchemaMetadata(subject)
  assert.equal(latest.version, 2)
  assert.equal(latest.id, second)
  assert.deepEqual(await client.getAllVersions(subject), [1, 2])
  assert.equal(await client.getVersion(subject, one), 1)
  assert.ok((await client.getAllSubjects()).includes(subject))
  assert.equal(await client.updateCompatibility(subject, 'FULL'), 'FULL')
  assert.equal(await client.getCompatibility(subject), 'FULL')
  assert.equal(await client.deleteSubjectVersion(subject, 1), 1)
  assert.equal((await client.getSchemaMetadata(subject, 1, true)).id, id)
  assert.deepEqual(await client.deleteSubject(subject), [2])
  assert.deepEqual(await client.deleteSubject(subject, true), [1, 2])
  await assert.rejects(client.getLatestSchemaMetadata('confluent-js-unknown'), (e) => e.errorCode === 40401)
  await client.close()
})

test('avro', async () => {
  const client = newClient()
  await client.register('confluent-js-avro-value', {
    schemaType: 'AVRO',
    schema: JSON.stringify({
      type: 'record', name: 'Order',
      fields: [{ name: 'id', type: 'long' }, { name: 'note', type: ['null', 'string'], default: null }],
    }),
  })
  const serializer = new AvroSerializer(client, SerdeType.VALUE, { useLatestVersion: true })
  const data = await serializer.serialize('confluent-js-avro', { id: 7, note: 'x' })
  const value = await new AvroDeserializer(newClient(), SerdeType.VALUE, {}).deserialize('confluent-js-avro', data)
  assert.equal(Number(value.id), 7)
  assert.equal(value.note, 'x')
})

test('json', async () => {
  const client = newClient()
  await client.register('confluent-js-json-value', {
    schemaType: 'JSON',
    schema: JSON.stringify({
      $schema: 'http://json-schema.org/draft-07/schema#', type: 'object',
      properties: { id: { type: 'integer' } }, required: ['id'], additionalProperties: false,
    }),
  })
  const serializer = new JsonSerializer(client, SerdeType.VALUE, { useLatestVersion: true, validate: true })
  const data = await serializer.serialize('confluent-js-json', { id: 7 })
  const deserializer = new JsonDeserializer(newClient(), SerdeType.VALUE, { validate: true })
  const value = await deserializer.deserialize('confluent-js-json', data)
  assert.deepEqual(value, { id: 7 })
  await assert.rejects(serializer.serialize('confluent-js-json', { id: 'seven' }))
})

// This serializer registers a base64-encoded descriptor instead of the text of a file. The
// deserializer cannot be tested: it requests format=serialized, which the registry ignores.
test('protobuf', async () => {
  const client = newClient()
  const serializer = new ProtobufSerializer(client, SerdeType.VALUE, { autoRegisterSchemas: true })
  serializer.registry.add(TimestampSchema)
  const data = await serializer.serialize('confluent-js-protobuf', create(TimestampSchema, { seconds: 7n }))
  assert.equal(data[0], 0)
  const latest = await client.getLatestSchemaMetadata('confluent-js-protobuf-value')
  assert.equal(latest.schemaType, 'PROTOBUF')
  assert.equal(data.readInt32BE(1), latest.id)
  assert.match(latest.schema, /message Timestamp/)
})
