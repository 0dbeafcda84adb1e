// The wire format of Protobuf, to show messages.
import { findType, parseProto } from './protoschema.js'

const maxDepth = 100
const maxSteps = 100000

// Wire types.
const varintType = 0
const wideType = 1 // eight bytes
const lengthType = 2 // a length, then so many bytes
const narrowType = 5 // four bytes

const scalars = {
  double: wideType,
  float: narrowType,
  int32: varintType,
  int64: varintType,
  uint32: varintType,
  uint64: varintType,
  sint32: varintType,
  sint64: varintType,
  fixed32: narrowType,
  fixed64: wideType,
  sfixed32: narrowType,
  sfixed64: wideType,
  bool: varintType,
  string: lengthType,
  bytes: lengthType,
}

function readVarint(r) {
  let out = 0n
  for (let shift = 0n; shift < 70n; shift += 7n) {
    if (r.at >= r.data.length) throw new Error('The payload ends too early.')
    const b = r.data[r.at++]
    out |= BigInt(b & 127) << shift
    if (b < 128) return BigInt.asUintN(64, out)
  }
  throw new Error('The payload contains a number with too many bytes.')
}

/** A BigInt as a number, if a number can represent it. */
const toNumber = n => Number.isSafeInteger(Number(n)) ? Number(n) : n
const zigzag = n => (n >> 1n) ^ -(n & 1n)

function varintValue(type, raw) {
  switch (type) {
    case 'bool':
      return raw !== 0n
    case 'int32':
    case 'int64':
      return toNumber(BigInt.asIntN(64, raw))
    case 'sint32':
    case 'sint64':
      return toNumber(zigzag(raw))
    default:
      return toNumber(raw)
  }
}

function fixedValue(type, data, wide) {
  const v = new DataView(data.buffer, data.byteOffset, data.byteLength)
  if (type === 'double') return v.getFloat64(0, true)
  if (type === 'float') return Number(v.getFloat32(0, true).toPrecision(8))
  if (wide) return toNumber(type === 'sfixed64' ? v.getBigInt64(0, true) : v.getBigUint64(0, true))
  return type === 'sfixed32' ? v.getInt32(0, true) : v.getUint32(0, true)
}

/**
 * Decodes a message that begins with the index of its type, as serializers of the
 * Confluent Schema Registry write it.
 * @param {string[]} texts the schema, then the schemas that it refers to
 * @param {Uint8Array} data
 */
export function decodeProto(texts, data) {
  const types = new Map()
  texts.slice(1).forEach(text => parseProto(text, types))
  const { top } = parseProto(texts[0], types)
  const r = { data, at: 0, steps: 0, types }
  return readMessage(readMessageIndex(r, top), r, data.length, 0)
}

/** Reads the path to a message type: its number among the top-level messages, then among nested ones. */
function readMessageIndex(r, top) {
  const readNumber = () => Number(zigzag(readVarint(r)))
  const n = readNumber()
  if (n < 0 || n > 64) throw new Error('The message index of the payload is invalid.')
  let message = null
  let list = top
  for (const i of n === 0 ? [0] : Array.from({ length: n }, readNumber)) {
    message = list[i]
    if (!message) throw new Error('The schema has no such message.')
    list = message.nested
  }
  return message
}

/** Reads one field: its number and its value, a varint (raw) or bytes (part). */
function readField(r, end) {
  const tag = Number(readVarint(r))
  const number = Math.floor(tag / 8)
  const wire = tag % 8
  if (wire === varintType) return { number, wire, raw: readVarint(r) }
  if (wire !== wideType && wire !== narrowType && wire !== lengthType) {
    throw new Error(`The payload has the unknown wire type ${wire}.`)
  }
  const n = wire === wideType ? 8 : wire === narrowType ? 4 : Number(readVarint(r))
  if (r.at + n > end) throw new Error('The payload ends too early.')
  const part = r.data.subarray(r.at, r.at + n)
  r.at += n
  return { number, wire, part }
}

function readMessage(message, r, end, depth) {
  if (depth > maxDepth) throw new Error('The payload is nested too deeply.')
  const out = Object.create(null)
  while (r.at < end) {
    if (++r.steps > maxSteps) throw new Error('The payload is too long to be shown.')
    const value = readField(r, end)
    const field = message?.fields.get(value.number)
    const name = field?.name ?? `#${value.number}`
    if (field?.map) {
      const [key, entry] = mapEntry(field, value.part, r, depth)
      out[name] ??= Object.create(null)
      out[name][key] = entry
    } else if (isPacked(field, value, r)) {
      out[name] ??= []
      readPacked(field, value.part, r, out[name])
    } else if (field?.repeated) {
      out[name] ??= []
      out[name].push(fieldValue(field, value, r, depth))
    } else {
      out[name] = fieldValue(field, value, r, depth)
    }
  }
  return out
}

const readInner = (message, part, r, depth) =>
  readMessage(message, { ...r, data: part, at: 0 }, part.length, depth + 1)

/** The enum or message of a field; null for scalars and unknown fields. */
function namedType(field, r) {
  if (!field || field.map || scalars[field.type] !== undefined) return null
  return findType(r.types, field.type, field.scope)
}

/** A map is encoded as messages with the fields key and value. */
function mapEntry({ map, scope }, part, r, depth) {
  const fields = new Map([[1, { name: 'key', type: map[0], scope }], [2, { name: 'value', type: map[1], scope }]])
  const pair = readInner({ fields }, part, r, depth)
  return [String(pair.key ?? ''), pair.value ?? null]
}

function fieldValue(field, { wire, raw, part }, r, depth) {
  const type = field?.type
  const named = namedType(field, r)
  if (wire === varintType) {
    if (named?.kind !== 'enum') return varintValue(type, raw)
    return named.values.get(Number(BigInt.asIntN(32, raw))) ?? toNumber(raw)
  }
  if (wire !== lengthType) return fixedValue(type ?? '', part, wire === wideType)
  if (named?.kind === 'message') return readInner(named, part, r, depth)
  if (type === 'string') return new TextDecoder().decode(part)
  return Array.from(part, b => b.toString(16).padStart(2, '0')).join('')
}

/** Whether the bytes of a repeated field are all its numbers, one after the other. */
function isPacked(field, { wire }, r) {
  if (!field?.repeated || wire !== lengthType) return false
  const scalar = scalars[field.type]
  return namedType(field, r)?.kind === 'enum' || scalar !== undefined && scalar !== lengthType
}

function readPacked(field, part, r, list) {
  const { type } = field
  const named = namedType(field, r)
  const inner = { ...r, data: part, at: 0 }
  const width = { [wideType]: 8, [narrowType]: 4 }[scalars[type]]
  while (inner.at < part.length && list.length < maxSteps) {
    if (width) {
      if (inner.at + width > part.length) break
      list.push(fixedValue(type, part.subarray(inner.at, inner.at + width), width === 8))
      inner.at += width
    } else {
      const n = readVarint(inner)
      list.push(named ? named.values.get(Number(n)) ?? toNumber(n) : varintValue(type, n))
    }
  }
}
