// Payloads of messages: their text, their views, and the request that produces them again.
import { html, nothing } from './html.js'
import { codeBlock } from './copy.js'
import { bytes, fromBase64, hexdump, toBase64 } from './format.js'
import { quote } from './requests.js'

const utf8 = text => new TextEncoder().encode(text)

/** A value as indented JSON; integers may have any size. */
export function pretty(v, indent = '') {
  const deeper = indent + '  '
  if (typeof v === 'bigint') return String(v)
  if (Array.isArray(v)) {
    const items = v.map(x => deeper + pretty(x, deeper))
    return items.length ? `[\n${items.join(',\n')}\n${indent}]` : '[]'
  }
  if (v && typeof v === 'object') {
    const members = Object.keys(v).map(k => `${deeper}${JSON.stringify(k)}: ${pretty(v[k], deeper)}`)
    return members.length ? `{\n${members.join(',\n')}\n${indent}}` : '{}'
  }
  return typeof v === 'number' && !Number.isFinite(v) ? `"${v}"` : JSON.stringify(v) ?? 'null'
}

/** The text of bytes; null if they are not readable text. */
export function textOf(data) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data)
    // eslint-disable-next-line no-control-regex
    return /[\0-\x08\x0b\x0c\x0e-\x1f]/.test(text) ? null : text
  } catch {
    return null
  }
}

/** The text of bytes that may be truncated in the middle of a character. */
export function textOfTruncated(data) {
  for (let less = 0; less < 4 && less <= data.length; less++) {
    if (less && data[data.length - less] < 128) return null
    const text = textOf(data.subarray(0, data.length - less))
    if (text != null) return text
  }
  return null
}

/** The text of bytes if it is JSON, else null. */
export function jsonOf(data) {
  const text = textOf(data)
  if (text == null || !/^\s*[[{"\-\dtfn]/.test(text)) return null
  try {
    JSON.parse(text)
  } catch {
    return null
  }
  return text
}

/** The registry's schema id before a value (a zero byte, then four bytes); 0 if there is none. */
export const schemaIdOf = data =>
  data.length > 5 && data[0] === 0 ? new DataView(data.buffer, data.byteOffset).getUint32(1) : 0

/** One line of a payload, for a table. */
export function preview(m) {
  if (m.isNull) return 'no value'
  if (m.decoded) {
    const bigints = (k, v) => typeof v === 'bigint' ? String(v) : v
    return m.line ??= JSON.stringify(m.decoded.value, bigints).slice(0, 300)
  }
  const text = textOfTruncated(m.bytes.subarray(0, 400))
  if (text != null) return text.replace(/\s+/g, ' ').slice(0, 300)
  return Array.from(m.bytes.subarray(0, 40), b => b.toString(16).padStart(2, '0')).join(' ')
}

/** The views that a payload has: [id, text]. */
export function payloadForms(m) {
  const list = []
  if (m.decoded || m.decodeError) list.push(['schema', 'Decoded'])
  if (jsonOf(m.bytes) != null) list.push(['json', 'JSON'])
  if (textOfTruncated(m.bytes) != null) list.push(['text', 'Text'])
  return [...list, ['hex', 'Hex']]
}

const decodedView = m => m.decoded
  ? html`<p class="muted small">${m.decoded.label}</p>${codeBlock(m.decoded.text, 'Payload')}`
  : html`<p class="callout warn">The payload cannot be decoded with its schema. ${m.decodeError}</p>`

const maxHex = 4096

export function payloadView(m, form) {
  if (m.isNull) {
    return html`<p class="callout">The message has no value (a tombstone): in a compacted topic it deletes its key.</p>`
  }
  if (form === 'schema') return decodedView(m)
  if (form === 'json') return codeBlock(pretty(JSON.parse(jsonOf(m.bytes))), 'Payload')
  if (form === 'text') return codeBlock(textOfTruncated(m.bytes) || ' ', 'Payload')
  return html`
    ${codeBlock(hexdump(m.bytes, maxHex), 'Payload')}
    ${m.bytes.length > maxHex ? html`<p class="muted small">The first 4 KiB of ${bytes(m.size)}.</p>` : nothing}`
}

const isPrintable = text => /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text)

/** The request headers that produce a message. */
export function produceHeaders({ key, keyEncoding, properties = {}, headers, eventTime, isNull }) {
  const out = {}
  if (key != null && key !== '' || keyEncoding) {
    const isBase64 = keyEncoding === 'base64'
    const encode = isBase64 || !isPrintable(key)
    out['X-Msg-Partition-Key'] = encode && !isBase64 ? toBase64(utf8(key)) : key
    if (encode) out['X-Msg-Partition-Key-Encoding'] = 'base64'
  }
  if (headers?.length) out['X-Msg-Record-Headers'] = toBase64(utf8(JSON.stringify(headers)))
  else if (Object.keys(properties).length) out['X-Msg-Properties'] = toBase64(utf8(JSON.stringify(properties)))
  if (eventTime) out['X-Msg-Event-Time'] = String(eventTime)
  if (isNull) out['X-Msg-Null-Value'] = 'true'
  return out
}

/** A curl command that produces a message with the same payload, key and headers. */
export function curlProduce(url, m) {
  const text = textOf(m.bytes)
  const asText = text != null && !text.startsWith('@') // curl reads a file after @
  const parts = ['curl --fail-with-body -sS -X POST', '-H "Authorization: Bearer $TOKEN"']
  for (const [k, v] of Object.entries(produceHeaders(m))) parts.push(`-H ${quote(`${k}: ${v}`)}`)
  if (m.bytes.length) parts.push(`--data-binary ${asText ? quote(text) : '@-'}`)
  parts.push(`"$FRESHET_SERVER"${quote(url)}`)
  const command = parts.join(' \\\n  ')
  return asText ? command : `${command} < <(base64 -d <<'END'\n${toBase64(m.bytes)}\nEND\n)`
}

/** The bytes of a payload that the user wrote as text, json or base64. */
export function payloadBytes(text, form) {
  if (form === 'base64') {
    try {
      return fromBase64(text)
    } catch {
      throw new Error('The payload is not base64.')
    }
  }
  if (form === 'json') parsePayload(text)
  return utf8(text)
}

/** Parses a payload that the user wrote as JSON. */
export function parsePayload(text) {
  try {
    return JSON.parse(text)
  } catch (e) {
    throw new Error(`The payload is not JSON: ${e.message}`)
  }
}
