// Avro in the browser: the binary encoding, read and written by a schema, as far as
// showing and sending messages needs it. Values are plain: a union is the value of its
// branch, bytes are a string of one character per byte, longs past 2^53 are BigInts.
const primitives = new Set(['null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string'])
const mostSteps = 200000, deepest = 200

/** A schema made ready: every name resolved. @param {string} text @param {string[]} references texts that define further names, in their order */
export function parseSchema(text, references = []) {
  const names = new Map()
  for (const r of references) resolve(parseText(r), '', names)
  return resolve(parseText(text), '', names)
}

const parseText = text => { try { return JSON.parse(text) } catch { if (/^\s*[\w.]+\s*$/.test(text)) return text.trim(); throw new Error('The schema is not JSON.') } }

function resolve(s, space, names) {
  if (typeof s === 'string') {
    if (primitives.has(s)) return { type: s }
    const found = names.get(s.includes('.') || !space ? s : `${space}.${s}`) ?? names.get(s)
    if (!found) throw new Error(`The schema names the type ${s}, which it does not define.`)
    return found
  }
  if (Array.isArray(s)) return { type: 'union', branches: s.map(b => resolve(b, space, names)) }
  if (s === null || typeof s !== 'object') throw new Error('The schema has something that is no type.')
  if (typeof s.type !== 'string') return resolve(s.type, space, names)
  if (primitives.has(s.type)) return { type: s.type, logical: s.logicalType }
  if (s.type === 'array') return { type: 'array', items: resolve(s.items, space, names) }
  if (s.type === 'map') return { type: 'map', values: resolve(s.values, space, names) }
  if (!['record', 'error', 'enum', 'fixed'].includes(s.type)) return resolve(s.type, space, names)
  const full = s.name.includes('.') ? s.name : [s.namespace ?? space, s.name].filter(Boolean).join('.')
  const own = full.includes('.') ? full.slice(0, full.lastIndexOf('.')) : ''
  const out = { type: s.type === 'error' ? 'record' : s.type, name: full, symbols: s.symbols, size: s.size }
  names.set(full, out)
  if (out.type === 'record') out.fields = s.fields.map(f => ({ name: f.name, type: resolve(f.type, own, names), default: f.default, hasDefault: 'default' in f }))
  return out
}

/** Reads one datum. @returns {{value: any, rest: number}} the value and how many bytes are left over */
export function decode(schema, data) {
  const r = { data, view: new DataView(data.buffer, data.byteOffset, data.byteLength), at: 0, steps: 0 }
  const value = read(schema, r, 0)
  return { value, rest: data.length - r.at }
}

function take(r, n) {
  if (n < 0 || r.at + n > r.data.length) throw new Error('The payload ends too early for its schema.')
  r.at += n
  return r.at - n
}

function readLong(r) {
  let out = 0n
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const b = r.data[take(r, 1)]
    out |= BigInt(b & 127) << shift
    if (b < 128) {
      out = BigInt.asIntN(64, (out >> 1n) ^ -(out & 1n))
      return Number.isSafeInteger(Number(out)) ? Number(out) : out
    }
  }
  throw new Error('The payload has a number that is too long.')
}

const latin = bytes => Array.from(bytes, b => String.fromCharCode(b)).join('')
const readBytes = r => { const n = Number(readLong(r)); const i = take(r, n); return r.data.subarray(i, i + n) }

function blocks(r, one) {
  for (;;) {
    let n = Number(readLong(r))
    if (n === 0) return
    if (n < 0) { n = -n; readLong(r) }
    for (let i = 0; i < n; i++) one()
  }
}

function read(s, r, depth) {
  if (depth > deepest || ++r.steps > mostSteps) throw new Error('The payload is nested too deeply or too long to be shown.')
  switch (s.type) {
    case 'null': return null
    case 'boolean': return r.data[take(r, 1)] !== 0
    case 'int': case 'long': return readLong(r)
    case 'float': return Number(r.view.getFloat32(take(r, 4), true).toPrecision(8))
    case 'double': return r.view.getFloat64(take(r, 8), true)
    case 'bytes': return latin(readBytes(r))
    case 'string': return new TextDecoder('utf-8', { fatal: true }).decode(readBytes(r))
    case 'fixed': { const i = take(r, s.size); return latin(r.data.subarray(i, i + s.size)) }
    case 'enum': { const i = readLong(r); if (s.symbols[i] === undefined) throw new Error(`The enum ${s.name} has no symbol number ${i}.`); return s.symbols[i] }
    case 'union': { const i = readLong(r); if (!s.branches[i]) throw new Error(`The union has no branch number ${i}.`); return read(s.branches[i], r, depth + 1) }
    case 'array': { const out = []; blocks(r, () => out.push(read(s.items, r, depth + 1))); return out }
    case 'map': { const out = Object.create(null); blocks(r, () => { const k = new TextDecoder().decode(readBytes(r)); out[k] = read(s.values, r, depth + 1) }); return out }
    case 'record': { const out = Object.create(null); for (const f of s.fields) out[f.name] = read(f.type, r, depth + 1); return out }
  }
  throw new Error(`The type ${s.type} is not known.`)
}

/** Writes a value. A member that is left out takes its default; unions take the plain value or {"branch": value}. */
export function encode(schema, value) {
  const out = []
  write(schema, value, out, '')
  return Uint8Array.from(out)
}

function writeLong(n, out) {
  let z = BigInt.asUintN(64, (BigInt(n) << 1n) ^ (BigInt(n) >> 63n))
  while (z > 127n) { out.push(Number(z & 127n) | 128); z >>= 7n }
  out.push(Number(z))
}
const writeBytes = (bytes, out) => { writeLong(bytes.length, out); for (const b of bytes) out.push(b) }
const kindOf = v => v === null ? 'null' : Array.isArray(v) ? 'an array' : typeof v === 'object' ? 'an object' : typeof v
const word = s => s.name ?? s.type

/** Whether a value can be one of a type, without looking into it. */
function fits(s, v) {
  switch (s.type) {
    case 'null': return v === null
    case 'boolean': return typeof v === 'boolean'
    case 'int': return Number.isInteger(v) && v >= -(2 ** 31) && v < 2 ** 31
    case 'long': return typeof v === 'bigint' || Number.isSafeInteger(v)
    case 'float': case 'double': return typeof v === 'number'
    case 'string': return typeof v === 'string'
    case 'bytes': return typeof v === 'string' && /^[\0-\xff]*$/.test(v)
    case 'fixed': return typeof v === 'string' && v.length === s.size && /^[\0-\xff]*$/.test(v)
    case 'enum': return s.symbols.includes(v)
    case 'array': return Array.isArray(v)
    case 'union': return s.branches.some(b => fits(b, v))
    case 'record': return kindOf(v) === 'an object' && s.fields.every(f => Object.hasOwn(v, f.name) || f.hasDefault)
    case 'map': return kindOf(v) === 'an object'
  }
  return false
}

function write(s, v, out, path) {
  if (s.type === 'union') {
    let i = s.branches.findIndex(b => fits(b, v))
    const keys = v !== null && typeof v === 'object' ? Object.keys(v) : []
    const named = keys.length === 1 ? s.branches.findIndex(b => word(b) === keys[0] || b.name?.split('.').at(-1) === keys[0]) : -1
    if (named >= 0 && (i < 0 || s.branches[i].type === 'map' || !Object.hasOwn(s.branches[i].fields ?? {}, keys[0]) && fits(s.branches[named], v[keys[0]]))) { i = named; v = v[keys[0]] }
    if (i < 0) throw new Error(`${path || 'the value'}: ${kindOf(v)} is none of ${s.branches.map(word).join(', ')}.`)
    writeLong(i, out)
    return write(s.branches[i], v, out, path)
  }
  if (s.type === 'record') {
    if (kindOf(v) !== 'an object') throw new Error(`${path || 'the value'}: ${kindOf(v)}, but ${s.name} is a record.`)
    for (const k of Object.keys(v)) if (!s.fields.some(f => f.name === k)) throw new Error(`${path ? path + '.' : ''}${k}: ${s.name} has no such field.`)
    for (const f of s.fields) {
      const where = `${path ? path + '.' : ''}${f.name}`
      if (!Object.hasOwn(v, f.name) && !f.hasDefault) throw new Error(`${where}: it is missing and has no default.`)
      write(f.type, Object.hasOwn(v, f.name) ? v[f.name] : f.default, out, where)
    }
    return
  }
  if (!fits(s, v)) throw new Error(`${path || 'the value'}: ${kindOf(v)}${typeof v === 'string' || typeof v === 'number' ? ` ${JSON.stringify(v)}` : ''} is no ${s.type === 'enum' ? `symbol of ${s.name}: ${s.symbols.join(', ')}` : word(s)}.`)
  switch (s.type) {
    case 'null': return
    case 'boolean': out.push(v ? 1 : 0); return
    case 'int': case 'long': writeLong(v, out); return
    case 'float': out.push(...new Uint8Array(new Float32Array([v]).buffer)); return
    case 'double': out.push(...new Uint8Array(new Float64Array([v]).buffer)); return
    case 'string': writeBytes(new TextEncoder().encode(v), out); return
    case 'bytes': writeBytes(Array.from(v, c => c.charCodeAt(0)), out); return
    case 'fixed': for (const c of v) out.push(c.charCodeAt(0)); return
    case 'enum': writeLong(s.symbols.indexOf(v), out); return
    case 'array':
      if (v.length) { writeLong(v.length, out); v.forEach((x, i) => write(s.items, x, out, `${path}[${i}]`)) }
      out.push(0)
      return
    case 'map': {
      const keys = Object.keys(v)
      if (keys.length) { writeLong(keys.length, out); for (const k of keys) { writeBytes(new TextEncoder().encode(k), out); write(s.values, v[k], out, `${path}{${k}}`) } }
      out.push(0)
    }
  }
}

/** A value to begin with. */
export function sample(s, depth = 0) {
  switch (s.type) {
    case 'null': return null
    case 'boolean': return false
    case 'int': case 'long': return s.logical === 'timestamp-millis' ? Date.now() : 0
    case 'float': case 'double': return 0
    case 'enum': return s.symbols[0]
    case 'fixed': return '\0'.repeat(s.size)
    case 'array': return depth > 4 ? [] : [sample(s.items, depth + 1)]
    case 'map': return {}
    case 'union': return sample(s.branches[0], depth)
    case 'record': return depth > 6 ? {} : Object.fromEntries(s.fields.map(f => [f.name, f.hasDefault ? f.default : sample(f.type, depth + 1)]))
  }
  return ''
}
