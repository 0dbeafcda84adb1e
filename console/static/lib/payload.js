// Payloads of messages: what they are, decoded by their schema, and as a command that
// sends them again.
import { html, nothing } from './html.js'
import { decode, parseSchema } from './avro.js'
import { decodeProto } from './proto.js'
import { bytes, fromBase64, hexdump, toBase64 } from './format.js'
import { quote } from './snippets.js'
import { codeBlock } from './widgets.js'
import { update } from './store.js'

/** A value as JSON with numbers of any size, bounded. */
export function pretty(v, indent = '') {
  const deeper = indent + '  '
  if (typeof v === 'bigint') return String(v)
  if (Array.isArray(v)) return v.length ? `[\n${v.map(x => deeper + pretty(x, deeper)).join(',\n')}\n${indent}]` : '[]'
  if (v && typeof v === 'object') {
    const keys = Object.keys(v)
    return keys.length ? `{\n${keys.map(k => `${deeper}${JSON.stringify(k)}: ${pretty(v[k], deeper)}`).join(',\n')}\n${indent}}` : '{}'
  }
  return typeof v === 'number' && !Number.isFinite(v) ? `"${v}"` : JSON.stringify(v) ?? 'null'
}

/** The text of bytes, or null when they are no text that a person could read. */
export function textOf(data) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data)
    // eslint-disable-next-line no-control-regex
    return /[\0-\x08\x0b\x0c\x0e-\x1f]/.test(text) ? null : text
  } catch { return null }
}

/** The text of bytes that may have been cut in the middle of a character. */
export function textOfCut(data) {
  for (let less = 0; less < 4 && less <= data.length; less++) {
    if (less && data[data.length - less] < 128) return null
    const text = textOf(data.subarray(0, data.length - less))
    if (text != null) return text
  }
  return null
}

export function jsonOf(data) {
  const text = textOf(data)
  if (text == null || !/^\s*[[{"\-\dtfn]/.test(text)) return null
  try { JSON.parse(text) } catch { return null }
  return text
}

/** The schema id in front of a value: a zero and four bytes. 0 when there is none. */
export const idInFront = data => data.length > 5 && data[0] === 0 ? new DataView(data.buffer, data.byteOffset).getUint32(1) : 0

/** Numbers and the like: topic schemas that have no text. */
const plain = {
  STRING: d => textOf(d) ?? '', BOOLEAN: d => d[0] === 1, INT8: d => new DataView(d.buffer, d.byteOffset).getInt8(0), INT16: d => new DataView(d.buffer, d.byteOffset).getInt16(0),
  INT32: d => new DataView(d.buffer, d.byteOffset).getInt32(0), INT64: d => new DataView(d.buffer, d.byteOffset).getBigInt64(0), FLOAT: d => new DataView(d.buffer, d.byteOffset).getFloat32(0), DOUBLE: d => new DataView(d.buffer, d.byteOffset).getFloat64(0),
}

/** Decodes messages of a topic by its own schema, or by the registry's id in front. */
export class Decoder {
  constructor(at, topic) {
    this.at = at
    this.topic = topic
    this.known = new Map()
  }

  remember(key, load) {
    if (!this.known.has(key)) {
      if (this.known.size > 100) this.known.delete(this.known.keys().next().value)
      this.known.set(key, load().catch(e => { setTimeout(() => this.known.delete(key), 10000); throw e }))
    }
    return this.known.get(key)
  }

  ofTopic(version) {
    const { tenant, namespace, topic } = this.topic
    return this.remember(`v${version}`, async () => {
      const s = await this.at.get(`${this.at.admin}/schemas/${[tenant, namespace, topic].map(encodeURIComponent).join('/')}/schema/${version}`, { background: true })
      return { type: s.type, label: `${s.type}, version ${version} of the topic's schema`, avro: s.type === 'AVRO' ? parseSchema(s.data) : null }
    })
  }

  ofRegistry(id) {
    return this.remember(`id${id}`, async () => {
      const s = await this.at.get(`${this.at.registry}/schemas/ids/${id}`, { background: true })
      const type = s.schemaType ?? 'AVRO'
      const references = type === 'AVRO' || type === 'PROTOBUF' ? await this.references(s.references ?? []) : []
      return { type, id, label: `${type}, schema id ${id} of the registry`, avro: type === 'AVRO' ? parseSchema(s.schema, references) : null, proto: type === 'PROTOBUF' ? [s.schema, ...references] : null }
    })
  }

  /** Texts of everything that is referred to, what is needed first before what needs it. */
  async references(list, seen = new Set()) {
    const out = []
    for (const r of list) {
      const key = `${r.subject} ${r.version}`
      if (seen.has(key) || seen.size > 200) continue
      seen.add(key)
      const s = await this.at.get(`${this.at.registry}/subjects/${encodeURIComponent(r.subject)}/versions/${r.version}`, { background: true })
      out.push(...await this.references(s.references ?? [], seen), s.schema)
    }
    return out
  }

  /** @returns {Promise<{label: string, text: string, id?: number} | null>} null when no schema is named */
  async decode(m) {
    const id = m.schemaId || idInFront(m.bytes)
    if (m.schemaVersion == null && !id) return null
    const s = m.schemaVersion != null ? await this.ofTopic(m.schemaVersion) : await this.ofRegistry(id)
    const data = m.schemaVersion != null ? m.bytes : m.bytes.subarray(5)
    if (s.avro) {
      const { value, rest } = decode(s.avro, data)
      if (rest && !m.cut) throw new Error(`${rest} bytes are left over.`)
      return { label: s.label, id: s.id, text: pretty(value), value }
    }
    if (s.type === 'JSON') { const text = jsonOf(data); if (text == null) throw new Error('It is not JSON.'); return { label: s.label, id: s.id, text: pretty(JSON.parse(text)), value: JSON.parse(text) } }
    if (s.proto) { const value = decodeProto(s.proto, data); return { label: s.label, id: s.id, text: pretty(value), value } }
    if (plain[s.type]) { const value = plain[s.type](data); return { label: s.label, text: pretty(value), value } }
    return null
  }

  /** Decodes once, and has the page shown again when it is done. */
  look(m) {
    if (m.asked) return m.decoded ?? null
    m.asked = true
    this.decode(m).then(d => { m.decoded = d }, e => { m.undecoded = e.message }).finally(update)
    return null
  }
}

/** One line of a payload for a table. */
export function preview(m) {
  if (m.isNull) return 'no value'
  if (m.decoded) return m.line ??= JSON.stringify(m.decoded.value, (k, v) => typeof v === 'bigint' ? String(v) : v).slice(0, 300)
  const text = textOfCut(m.bytes.subarray(0, 400))
  return text != null ? text.replace(/\s+/g, ' ').slice(0, 300) : Array.from(m.bytes.subarray(0, 40), b => b.toString(16).padStart(2, '0')).join(' ')
}

/** The ways in which a payload can be shown. */
export function forms(m) {
  const list = []
  if (m.decoded || m.undecoded) list.push(['schema', 'Decoded'])
  if (jsonOf(m.bytes) != null) list.push(['json', 'JSON'])
  if (textOfCut(m.bytes) != null) list.push(['text', 'Text'])
  return [...list, ['hex', 'Hex']]
}

export function payloadView(m, form) {
  if (m.isNull) return html`<p class="callout">The message has no value: it deletes its key where the topic is compacted.</p>`
  if (form === 'schema') return m.decoded ? html`<p class="muted small">${m.decoded.label}</p>${codeBlock(m.decoded.text, 'Payload')}` : html`<p class="callout warn">It could not be decoded by its schema. ${m.undecoded}</p>`
  if (form === 'json') return codeBlock(pretty(JSON.parse(jsonOf(m.bytes))), 'Payload')
  if (form === 'text') return codeBlock(textOfCut(m.bytes) || ' ', 'Payload')
  return html`${codeBlock(hexdump(m.bytes, 4096), 'Payload')}${m.bytes.length > 4096 ? html`<p class="muted small">The first 4 KiB of ${bytes(m.size)}.</p>` : nothing}`
}

const ascii = text => /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text)

/** The headers that a message is produced with. */
export function produceHeaders({ key, keyEncoding, properties = {}, headers, eventTime, isNull }) {
  const out = {}
  if (key != null && key !== '' || keyEncoding) {
    const encoded = keyEncoding === 'base64' || !ascii(key)
    out['X-Msg-Partition-Key'] = keyEncoding === 'base64' || !encoded ? key : toBase64(new TextEncoder().encode(key))
    if (encoded) out['X-Msg-Partition-Key-Encoding'] = 'base64'
  }
  if (headers?.length) out['X-Msg-Record-Headers'] = toBase64(new TextEncoder().encode(JSON.stringify(headers)))
  else if (Object.keys(properties).length) out['X-Msg-Properties'] = toBase64(new TextEncoder().encode(JSON.stringify(properties)))
  if (eventTime) out['X-Msg-Event-Time'] = String(eventTime)
  if (isNull) out['X-Msg-Null-Value'] = 'true'
  return out
}

/** A command that produces a message as it is, whatever bytes it has. */
export function curlProduce(url, m) {
  const text = textOf(m.bytes)
  const asText = text != null && !text.startsWith('@') // curl would take that for the name of a file
  const command = ['curl --fail-with-body -sS -X POST', '-H "Authorization: Bearer $TOKEN"', ...Object.entries(produceHeaders(m)).map(([k, v]) => `-H ${quote(`${k}: ${v}`)}`),
    ...(m.bytes.length ? [`--data-binary ${asText ? quote(text) : '@-'}`] : []), `"$BASE_URL"${quote(url)}`].join(' \\\n  ')
  return asText ? command : `${command} < <(base64 -d <<'END'\n${toBase64(m.bytes)}\nEND\n)`
}

/** The bytes that a person wrote, by the form that was chosen. */
export function bytesOf(text, form) {
  if (form === 'json') { try { JSON.parse(text) } catch (e) { throw new Error(`It is not JSON: ${e.message}`) } }
  if (form === 'base64') { try { return fromBase64(text) } catch { throw new Error('It is not base64.') } }
  return new TextEncoder().encode(text)
}
