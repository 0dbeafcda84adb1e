// KafkaJS reads several topics with one consumer and writes the records to files. The Go tests check
// that every record belongs to the partition that the client reports (package origins).
const fs = require('node:fs')
const path = require('node:path')
const { test } = require('node:test')
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require('kafkajs')

const { FRESHET_STREAM: stream, FRESHET_TOKEN: token } = process.env
const { FRESHET_ORIGIN_TOPICS: topics, FRESHET_ORIGIN_RECORDS: records, FRESHET_ORIGIN_OUTPUT: output } = process.env
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')

const kafka = new Kafka({
  clientId: 'origins', brokers: (stream || '').split(','), logLevel: logLevel.NOTHING,
  sasl: { mechanism: 'plain', username: 'user', password: `token:${token}` },
})
const idle = 15000 // timeout in milliseconds for the next record

for (const [name, limits] of Object.entries({
  default: {},
  small: { maxBytes: 300000, maxBytesPerPartition: 100000 },
  medium: { maxBytes: 10000000, maxBytesPerPartition: 250000 },
})) {
  test(`all topics, ${name} fetch limits`, { skip: !topics && 'FRESHET_ORIGIN_TOPICS is not set' }, async () => {
    const consumer = kafka.consumer({ groupId: `origins-kafkajs-${name}`, maxWaitTimeInMs: 500, ...limits })
    const file = fs.openSync(path.join(output, `kafkajs-${name}`), 'w')
    let left = Number(records)
    try {
      await consumer.connect()
      await consumer.subscribe({ topics: topics.split(','), fromBeginning: true })
      await new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`got no record for ${idle} ms, ${left} are missing`)), idle)
        consumer.run({
          autoCommit: false,
          eachMessage: async ({ topic, partition, message: { offset, value } }) => {
            if (left === 0) return
            left--
            late.refresh()
            const line = Buffer.from(`${topic} ${partition} ${offset} ${value.length}\n`)
            fs.writeSync(file, Buffer.concat([line, value, Buffer.from('\n')]))
            if (left === 0) {
              clearTimeout(late)
              resolve()
            }
          },
        }).catch(reject)
      })
    } finally {
      await consumer.disconnect()
      fs.closeSync(file)
    }
  })
}
