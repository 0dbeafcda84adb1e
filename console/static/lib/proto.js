// Protobuf in the browser: enough of the language to name the fields of a message, and
// the wire format. The registry's text is canonical: no comments, one declaration a line.
const scalar = { double: 1, float: 5, int32: 0, int64: 0, uint32: 0, uint64: 0, sint32: 0, sint64: 0, fixed32: 5, fixed64: 1, sfixed32: 5, sfixed64: 1, bool: 0, string: 2, bytes: 2 }
const deepest = 100, mostSteps = 100000

/** Messages and enums of a file by full name, and the messages at the top in their order. */
export function parseProto(text, types = new Map()) {
  const tokens = text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, ' ').match(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\w.]+|[^\s]/g) ?? []
  let i = 0, space = ''
  const skip = () => { for (let depth = 0; i < tokens.length; i++) { if (tokens[i] === '{' || tokens[i] === '[') depth++; else if (tokens[i] === '}' || tokens[i] === ']') { if (--depth === 0 && tokens[i] === '}') { i++; return } } else if (tokens[i] === ';' && depth === 0) { i++; return } } }
  const enumeration = scope => {
    const e = { kind: 'enum', values: new Map() }
    types.set([scope, tokens[i]].filter(Boolean).join('.'), e)
    for (i += 2; i < tokens.length && tokens[i] !== '}';) {
      if (tokens[i + 1] === '=') { const sign = tokens[i + 2] === '-'; e.values.set(Number((sign ? '-' : '') + tokens[i + (sign ? 3 : 2)]), tokens[i]) }
      skip()
    }
    i++
  }
  const body = (m, scope) => {
    while (i < tokens.length && tokens[i] !== '}') {
      const t = tokens[i]
      if (t === 'message' || t === 'enum') { i++; t === 'message' ? message(scope, m.nested) : enumeration(scope); continue }
      if (t === 'oneof' && tokens[i + 2] === '{') { i += 3; body(m, scope); i++; continue }
      if (['option', 'reserved', 'extensions', 'extend', ';'].includes(t)) { skip(); continue }
      let repeated = false
      if (['optional', 'required', 'repeated'].includes(t) && tokens[i + 2] !== '=') { repeated = t === 'repeated'; i++ }
      if (tokens[i] === 'map' && tokens[i + 1] === '<') {
        m.fields.set(Number(tokens[i + 8]), { name: tokens[i + 6], map: [tokens[i + 2], tokens[i + 4]], scope })
      } else m.fields.set(Number(tokens[i + 3]), { name: tokens[i + 1], type: tokens[i], repeated, scope })
      skip()
    }
  }
  const message = (scope, into) => {
    const full = [scope, tokens[i]].filter(Boolean).join('.')
    const m = { kind: 'message', name: full, fields: new Map(), nested: [] }
    types.set(full, m)
    into.push(m)
    i += 2
    body(m, full)
    i++
  }
  const top = []
  while (i < tokens.length) {
    const t = tokens[i++]
    if (t === 'package') { space = tokens[i]; skip() } else if (t === 'message') message(space, top)
    else if (t === 'enum') enumeration(space)
    else { i--; skip() }
  }
  return { top, types }
}

function find(types, name, scope) {
  if (name.startsWith('.')) return types.get(name.slice(1))
  for (let s = scope; ; s = s.includes('.') ? s.slice(0, s.lastIndexOf('.')) : '') {
    const found = types.get(s ? `${s}.${name}` : name)
    if (found || !s) return found
  }
}

function varint(r) {
  let out = 0n
  for (let shift = 0n; shift < 70n; shift += 7n) {
    if (r.at >= r.data.length) throw new Error('The payload ends too early.')
    const b = r.data[r.at++]
    out |= BigInt(b & 127) << shift
    if (b < 128) return BigInt.asUintN(64, out)
  }
  throw new Error('The payload has a number that is too long.')
}

const small = n => Number.isSafeInteger(Number(n)) ? Number(n) : n

function numberOf(type, raw) {
  switch (type) {
    case 'bool': return raw !== 0n
    case 'int32': case 'int64': return small(BigInt.asIntN(64, raw))
    case 'sint32': case 'sint64': return small((raw >> 1n) ^ -(raw & 1n))
    default: return small(raw)
  }
}

function fixed(type, data, wide) {
  const v = new DataView(data.buffer, data.byteOffset, data.byteLength)
  if (type === 'double') return v.getFloat64(0, true)
  if (type === 'float') return Number(v.getFloat32(0, true).toPrecision(8))
  if (wide) return small(type === 'sfixed64' ? v.getBigInt64(0, true) : v.getBigUint64(0, true))
  return type === 'sfixed32' ? v.getInt32(0, true) : v.getUint32(0, true)
}

/** @param {string[]} texts the schema, then what it refers to @param {Uint8Array} data with the index of the message in front */
export function decodeProto(texts, data) {
  const types = new Map()
  texts.slice(1).forEach(t => parseProto(t, types))
  const { top } = parseProto(texts[0], types)
  const r = { data, at: 0, steps: 0, types }
  const zigzag = () => { const n = varint(r); return Number((n >> 1n) ^ -(n & 1n)) }
  const n = zigzag()
  if (n < 0 || n > 64) throw new Error('The index of the message is not valid.')
  let m = null, list = top
  for (const i of n === 0 ? [0] : Array.from({ length: n }, zigzag)) { m = list[i]; if (!m) throw new Error('The schema has no such message.'); list = m.nested }
  return readMessage(m, r, data.length, 0)
}

function readMessage(m, r, end, depth) {
  if (depth > deepest) throw new Error('The payload is nested too deeply.')
  const out = Object.create(null)
  while (r.at < end) {
    if (++r.steps > mostSteps) throw new Error('The payload is too long to be shown.')
    const tag = Number(varint(r)), number = Math.floor(tag / 8), wire = tag % 8
    const f = m?.fields.get(number)
    const name = f?.name ?? `#${number}`
    let part = null, raw = null
    if (wire === 0) raw = varint(r)
    else if (wire === 1 || wire === 5 || wire === 2) {
      const n = wire === 1 ? 8 : wire === 5 ? 4 : Number(varint(r))
      if (r.at + n > end) throw new Error('The payload ends too early.')
      part = r.data.subarray(r.at, r.at + n)
      r.at += n
    } else throw new Error(`Wire type ${wire} is not known.`)
    const type = f?.type, named = f && !f.map && scalar[type] === undefined ? find(r.types, type, f.scope) : null
    const inner = (t, d) => readMessage(t, { ...r, data: d, at: 0 }, d.length, depth + 1)
    if (f?.map) {
      const entry = { fields: new Map([[1, { name: 'key', type: f.map[0], scope: f.scope }], [2, { name: 'value', type: f.map[1], scope: f.scope }]]) }
      const pair = inner(entry, part)
      ;(out[name] ??= Object.create(null))[String(pair.key ?? '')] = pair.value ?? null
      continue
    }
    const value = () => {
      if (wire === 0) return named?.kind === 'enum' ? named.values.get(Number(BigInt.asIntN(32, raw))) ?? small(raw) : numberOf(type, raw)
      if (wire !== 2) return fixed(type ?? '', part, wire === 1)
      if (named?.kind === 'message') return inner(named, part)
      if (type === 'string') return new TextDecoder().decode(part)
      return Array.from(part, b => b.toString(16).padStart(2, '0')).join('')
    }
    const packed = f?.repeated && wire === 2 && (named?.kind === 'enum' || scalar[type] !== undefined && scalar[type] !== 2)
    if (packed) {
      const list = out[name] ??= [], inside = { ...r, data: part, at: 0 }
      while (inside.at < part.length && list.length < mostSteps) {
        if (scalar[type] === 1 || scalar[type] === 5) { const w = scalar[type] === 1 ? 8 : 4; if (inside.at + w > part.length) break; list.push(fixed(type, part.subarray(inside.at, inside.at + w), w === 8)); inside.at += w } else {
          const n = varint(inside)
          list.push(named ? named.values.get(Number(n)) ?? small(n) : numberOf(type, n))
        }
      }
    } else if (f?.repeated) (out[name] ??= []).push(value())
    else out[name] = value()
  }
  return out
}
