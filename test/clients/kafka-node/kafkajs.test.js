// KafkaJS with the registry client of its project: produce, consume, consumer groups,
// administration, both SASL mechanisms, and messages that a Go program wrote.
const assert = require('node:assert/strict')
const fs = require('node:fs')
const zlib = require('node:zlib')
const { randomUUID } = require('node:crypto')
const { test } = require('node:test')
const {
  AssignerProtocol, CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel, PartitionAssigners,
} = require('kafkajs')
const { SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry')

const { FRESHET_STREAM: stream, FRESHET_STREAM_TLS: secured, FRESHET_CA: authority } = process.env
const { FRESHET_SERVER: url, FRESHET_TOKEN: token, FRESHET_AVRO_TOPIC: avroTopic } = process.env
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
if (zlib.zstdCompressSync) {
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async encoder => zlib.zstdCompressSync(encoder.buffer),
    decompress: async buffer => zlib.zstdDecompressSync(buffer),
  })
}

const connect = (more = {}) => new Kafka({
  clientId: 'node', brokers: [stream], logLevel: logLevel.NOTHING,
  sasl: { mechanism: 'plain', username: 'public/default', password: `token:${token}` }, ...more,
})
const kafka = connect()
const registry = new SchemaRegistry({ host: url, auth: { username: 'user', password: token } })
const unique = prefix => `node-${prefix}-${randomUUID().slice(0, 8)}`

const withAdmin = async (use, client = kafka) => {
  const admin = client.admin()
  try {
    await admin.connect()
    return await use(admin)
  } finally {
    await admin.disconnect()
  }
}

const create = async (prefix, numPartitions = 1, configEntries = []) => {
  const topic = unique(prefix)
  const topics = [{ topic, numPartitions, replicationFactor: 1, configEntries }]
  await withAdmin(admin => admin.createTopics({ topics }))
  return topic
}

const send = async (topic, messages, options = {}) => {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  try {
    await producer.connect()
    await producer.send({ topic, messages, ...options })
  } finally {
    await producer.disconnect()
  }
}

// read consumes n messages with a consumer group.
const read = async (topics, groupId, n, options = {}) => {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 10000, heartbeatInterval: 300, ...options })
  await consumer.connect()
  await consumer.subscribe({ topics: [topics].flat(), fromBeginning: true })
  const got = []
  await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`got ${got.length} messages of ${n}`)), 30000)
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ topic, partition, message }) => {
        if (got.length >= n) return
        got.push(message)
        await consumer.commitOffsets([{ topic, partition, offset: `${BigInt(message.offset) + 1n}` }])
        if (got.length === n) {
          clearTimeout(late)
          resolve()
        }
      },
    }).catch(reject)
  })
  await consumer.disconnect()
  return got
}

test('messages that Go wrote', async () => {
  const messages = await read(avroTopic, unique('avro'), 3)
  const orders = await Promise.all(messages.map(m => registry.decode(m.value)))
  assert.deepEqual(orders.map(o => o.note).sort(), ['order 0', 'order 1', 'order 2'])
})

test('the registry of the cluster', async () => {
  const topic = await create('registry', 1, [{ name: 'kop.stream.value.schema.validation', value: 'true' }])
  const schema = JSON.stringify({
    type: 'record', name: 'Order', namespace: 'node', fields: [{ name: 'id', type: 'int' }],
  })
  const { id } = await registry.register({ type: SchemaType.AVRO, schema }, { subject: `${topic}-value` })
  await send(topic, [{ value: await registry.encode(id, { id: 7 }) }])
  const [message] = await read(topic, topic, 1)
  assert.equal((await registry.decode(message.value)).id, 7)
  await assert.rejects(send(topic, [{ value: 'plain' }], { timeout: 1000 }), /record/)
})

const codecs = {
  none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy,
  ...(zlib.zstdCompressSync && { zstd: CompressionTypes.ZSTD }),
}
for (const [name, compression] of Object.entries(codecs)) {
  test(`messages, ${name}`, async () => {
    const topic = await create(name)
    const sent = Array.from({ length: 20 }, (_, i) => ({
      key: `key-${i}`, value: 'x'.repeat(i), headers: { h: Buffer.from([255, i]) }, timestamp: `${1700000000000 + i}`,
    }))
    sent.push({ key: 'gone', value: null })
    await send(topic, sent, { compression, acks: -1 })
    const got = [...await read(topic, topic, 12), ...await read(topic, topic, 9)]
    assert.deepEqual(got.map(m => [m.key.toString(), m.value && m.value.toString()]), sent.map(m => [m.key, m.value]))
    const metadata = messages => messages.slice(0, 20).map(m => [m.timestamp, m.headers.h])
    assert.deepEqual(metadata(got), metadata(sent))
  })
}

test('members of a group share partitions', async () => {
  const topic = await create('group', 4)
  const groupId = unique('group')
  const members = await Promise.all([0, 1].map(async () => {
    const consumer = kafka.consumer({
      groupId, sessionTimeout: 10000, heartbeatInterval: 300, rebalanceTimeout: 10000,
      partitionAssigners: [PartitionAssigners.roundRobin],
    })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    const member = { consumer, seen: new Set() }
    member.shares = new Promise(resolve => consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      if ((payload.memberAssignment[topic] || []).length === 2) resolve()
    }))
    await consumer.run({ eachMessage: async ({ partition }) => { member.seen.add(partition) } })
    return member
  }))
  await Promise.all(members.map(m => m.shares))
  await send(topic, [0, 1, 2, 3].map(partition => ({ partition, value: 'x' })))
  for (const end = Date.now() + 20000; members.some(m => m.seen.size < 2) && Date.now() < end;) {
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  assert.deepEqual([...members[0].seen, ...members[1].seen].sort(), [0, 1, 2, 3])
  await withAdmin(async admin => {
    const { groups: [group] } = await admin.describeGroups([groupId])
    assert.equal(group.state, 'Stable')
    assert.equal(group.members.length, 2)
    const { assignment } = AssignerProtocol.MemberAssignment.decode(group.members[0].memberAssignment)
    assert.equal(assignment[topic].length, 2)
    await assert.rejects(admin.deleteGroups([groupId]))
  })
  await Promise.all(members.map(m => m.consumer.disconnect()))
  await withAdmin(async admin => {
    await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '0' }] })
    const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic] })
    assert.equal(partitions.find(p => p.partition === 0).offset, '0')
    await admin.deleteGroups([groupId])
    assert.equal((await admin.listGroups()).groups.some(g => g.groupId === groupId), false)
  })
})

test('administration', async () => {
  const topic = await create('admin', 1, [{ name: 'retention.ms', value: '60000' }])
  await send(topic, [{ value: 'a', timestamp: '1000' }, { value: 'b', timestamp: '2000' }])
  await withAdmin(async admin => {
    assert.equal(await admin.createTopics({ topics: [{ topic }] }), false)
    await admin.createPartitions({ topicPartitions: [{ topic, count: 2 }] })
    const { topics: [metadata] } = await admin.fetchTopicMetadata({ topics: [topic] })
    assert.equal(metadata.partitions.length, 2)
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
    const { resources: [{ configEntries: [entry] }] } = await admin.describeConfigs({
      resources: [{ ...resource, configNames: ['retention.ms'] }], includeSynonyms: false,
    })
    assert.equal(entry.configValue, '60000')
    await admin.alterConfigs({
      validateOnly: false, resources: [{ ...resource, configEntries: [{ name: 'retention.ms', value: '70000' }] }],
    })
    const first = offsets => offsets.find(p => p.partition === 0)
    assert.deepEqual(first(await admin.fetchTopicOffsets(topic)), { partition: 0, offset: '2', high: '2', low: '0' })
    assert.equal(first(await admin.fetchTopicOffsetsByTimestamp(topic, 1500)).offset, '1')
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '1' }] })
    assert.equal(first(await admin.fetchTopicOffsets(topic)).low, '1')
    const cluster = await admin.describeCluster()
    assert.deepEqual([cluster.brokers.map(b => b.nodeId), cluster.controller], [[1], 1])
    await admin.deleteTopics({ topics: [topic] })
    assert.equal((await admin.listTopics()).includes(topic), false)
  })
})

test('authentication', async () => {
  const list = more => withAdmin(admin => admin.listTopics(), connect({ retry: { retries: 0 }, ...more }))
  const oauth = { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: token }) }
  assert.ok((await list({ sasl: oauth })).length > 0)
  assert.ok((await list({ brokers: [secured], ssl: { ca: [fs.readFileSync(authority, 'utf-8')] } })).length > 0)
  const wrong = { mechanism: 'plain', username: 'user', password: 'wrong' }
  await assert.rejects(list({ sasl: wrong }), /SASL PLAIN authentication failed/)
  await assert.rejects(list({ sasl: { mechanism: 'scram-sha-256', username: 'user', password: 'x' } }), /mechanism/i)
})
