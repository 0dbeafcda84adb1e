// Decoding of payloads with the topic's schema, or with the schema of the registry whose
// id is in the message.
import { decode } from './avro.js'
import { parseSchema } from './avroschema.js'
import { topicSchemas } from './clusters.js'
import { countOf } from './format.js'
import { jsonOf, pretty, schemaIdOf, textOf } from './payload.js'
import { decodeProto } from './proto.js'
import { update } from './store.js'

const viewOf = data => new DataView(data.buffer, data.byteOffset)

/** The topic schemas without a definition. */
const plainTypes = {
  STRING: data => textOf(data) ?? '',
  BOOLEAN: data => data[0] === 1,
  INT8: data => viewOf(data).getInt8(0),
  INT16: data => viewOf(data).getInt16(0),
  INT32: data => viewOf(data).getInt32(0),
  INT64: data => viewOf(data).getBigInt64(0),
  FLOAT: data => viewOf(data).getFloat32(0),
  DOUBLE: data => viewOf(data).getFloat64(0),
}

const background = { background: true }

/** Decodes the messages of one topic, and caches their schemas. */
export class Decoder {
  constructor(client, topic) {
    this.client = client
    this.topic = topic
    this.schemas = new Map()
  }

  /** Returns a cached schema, or loads it. A failed request is repeated after ten seconds. */
  cached(key, load) {
    if (!this.schemas.has(key)) {
      if (this.schemas.size > 100) this.schemas.delete(this.schemas.keys().next().value)
      this.schemas.set(key, load().catch(e => {
        setTimeout(() => this.schemas.delete(key), 10000)
        throw e
      }))
    }
    return this.schemas.get(key)
  }

  topicSchema(version) {
    return this.cached(`v${version}`, async () => {
      const s = await this.client.get(`${topicSchemas(this.client, this.topic)}/schema/${version}`, background)
      const avro = s.type === 'AVRO' ? parseSchema(s.data) : null
      return { type: s.type, label: `${s.type}, version ${version} of the topic's schema`, avro }
    })
  }

  registrySchema(id) {
    return this.cached(`id${id}`, async () => {
      const s = await this.client.get(`${this.client.registry}/schemas/ids/${id}`, background)
      const type = s.schemaType ?? 'AVRO'
      const label = `${type}, schema id ${id} of the registry`
      if (type !== 'AVRO' && type !== 'PROTOBUF') return { type, id, label }
      const references = await this.references(s.references ?? [])
      return type === 'AVRO'
        ? { type, id, label, avro: parseSchema(s.schema, references) }
        : { type, id, label, proto: [s.schema, ...references] }
    })
  }

  /** The texts of all schemas that are referred to, each after the ones that it needs. */
  async references(list, seen = new Set()) {
    const out = []
    for (const { subject, version } of list) {
      const key = `${subject} ${version}`
      if (seen.has(key) || seen.size > 200) continue
      seen.add(key)
      const url = `${this.client.registry}/subjects/${encodeURIComponent(subject)}/versions/${version}`
      const s = await this.client.get(url, background)
      out.push(...await this.references(s.references ?? [], seen), s.schema)
    }
    return out
  }

  /** @returns {Promise<{label: string, text: string, value: any, id?: number} | null>} null without a schema */
  async decode(m) {
    const id = m.schemaId || schemaIdOf(m.bytes)
    const hasVersion = m.schemaVersion != null
    if (!hasVersion && !id) return null
    const schema = hasVersion ? await this.topicSchema(m.schemaVersion) : await this.registrySchema(id)
    const data = hasVersion ? m.bytes : m.bytes.subarray(5)
    const value = decodeWith(schema, data, m.truncated)
    return value === undefined ? null : { label: schema.label, id: schema.id, text: pretty(value), value }
  }

  /** Decodes a message once, sets m.decoded or m.decodeError, and updates the page. */
  request(m) {
    if (m.requested) return
    m.requested = true
    this.decode(m).then(
      decoded => { m.decoded = decoded },
      e => { m.decodeError = e.message },
    ).finally(update)
  }
}

/** Returns undefined if the type has no decoder. */
function decodeWith(schema, data, truncated) {
  if (schema.avro) {
    const { value, rest } = decode(schema.avro, data)
    if (rest && !truncated) throw new Error(`The payload has ${countOf(rest, 'byte')} after the value.`)
    return value
  }
  if (schema.type === 'JSON') {
    const text = jsonOf(data)
    if (text == null) throw new Error('The payload is not JSON.')
    return JSON.parse(text)
  }
  if (schema.proto) return decodeProto(schema.proto, data)
  return plainTypes[schema.type]?.(data)
}
