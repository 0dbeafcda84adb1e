// The binary encoding of Avro, to show and to send messages. Values are plain: a union is
// the value of its branch, bytes are a string with one character per byte, and longs
// beyond 2^53 are BigInts.
const maxSteps = 200000
const maxDepth = 200

/** Decodes one value. @returns {{value: any, rest: number}} the value and the number of bytes after it */
export function decode(schema, data) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const r = { data, view, at: 0, steps: 0 }
  const value = read(schema, r, 0)
  return { value, rest: data.length - r.at }
}

/** Advances by n bytes and returns the position before them. */
function skip(r, n) {
  if (n < 0 || r.at + n > r.data.length) throw new Error('The payload ends too early for its schema.')
  r.at += n
  return r.at - n
}

function readLong(r) {
  let out = 0n
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const b = r.data[skip(r, 1)]
    out |= BigInt(b & 127) << shift
    if (b < 128) {
      out = BigInt.asIntN(64, (out >> 1n) ^ -(out & 1n))
      return Number.isSafeInteger(Number(out)) ? Number(out) : out
    }
  }
  throw new Error('The payload contains a number with too many bytes.')
}

const toLatin1 = bytes => Array.from(bytes, b => String.fromCharCode(b)).join('')

function take(r, n) {
  const at = skip(r, n)
  return r.data.subarray(at, at + n)
}

const readBytes = r => take(r, Number(readLong(r)))

/** Calls readItem for every item in the blocks of an array or a map. */
function readBlocks(r, readItem) {
  for (;;) {
    let n = Number(readLong(r))
    if (n === 0) return
    if (n < 0) { // the size of the block in bytes follows
      n = -n
      readLong(r)
    }
    for (let i = 0; i < n; i++) readItem()
  }
}

const readers = {
  null: () => null,
  boolean: (s, r) => r.data[skip(r, 1)] !== 0,
  int: (s, r) => readLong(r),
  long: (s, r) => readLong(r),
  float: (s, r) => Number(r.view.getFloat32(skip(r, 4), true).toPrecision(8)),
  double: (s, r) => r.view.getFloat64(skip(r, 8), true),
  bytes: (s, r) => toLatin1(readBytes(r)),
  string: (s, r) => new TextDecoder('utf-8', { fatal: true }).decode(readBytes(r)),
  fixed: (s, r) => toLatin1(take(r, s.size)),
  enum: (s, r) => {
    const i = readLong(r)
    if (s.symbols[i] === undefined) throw new Error(`The enum ${s.name} has no symbol number ${i}.`)
    return s.symbols[i]
  },
  union: (s, r, depth) => {
    const i = readLong(r)
    if (!s.branches[i]) throw new Error(`The union has no branch number ${i}.`)
    return read(s.branches[i], r, depth)
  },
  array: (s, r, depth) => {
    const out = []
    readBlocks(r, () => out.push(read(s.items, r, depth)))
    return out
  },
  map: (s, r, depth) => {
    const out = Object.create(null)
    readBlocks(r, () => {
      const key = new TextDecoder().decode(readBytes(r))
      out[key] = read(s.values, r, depth)
    })
    return out
  },
  record: (s, r, depth) => {
    const out = Object.create(null)
    for (const f of s.fields) out[f.name] = read(f.type, r, depth)
    return out
  },
}

function read(s, r, depth) {
  if (depth > maxDepth || ++r.steps > maxSteps) {
    throw new Error('The payload is nested too deeply or is too long to be shown.')
  }
  if (!Object.hasOwn(readers, s.type)) throw new Error(`The type ${s.type} is unknown.`)
  return readers[s.type](s, r, depth + 1)
}

/** Encodes a value. A missing field gets its default; a union takes the plain value or {"branch": value}. */
export function encode(schema, value) {
  const out = []
  write(schema, value, out, '')
  return Uint8Array.from(out)
}

function writeLong(n, out) {
  let z = BigInt.asUintN(64, (BigInt(n) << 1n) ^ (BigInt(n) >> 63n))
  while (z > 127n) {
    out.push(Number(z & 127n) | 128)
    z >>= 7n
  }
  out.push(Number(z))
}

function writeBytes(bytes, out) {
  writeLong(bytes.length, out)
  for (const b of bytes) out.push(b)
}

function describe(v) {
  if (v === null) return 'null'
  if (Array.isArray(v)) return 'an array'
  return typeof v === 'object' ? 'an object' : typeof v
}

const isObject = v => describe(v) === 'an object'
const isBinary = v => typeof v === 'string' && /^[\0-\xff]*$/.test(v)
const typeName = s => s.name ?? s.type

const tests = {
  null: (s, v) => v === null,
  boolean: (s, v) => typeof v === 'boolean',
  int: (s, v) => Number.isInteger(v) && v >= -(2 ** 31) && v < 2 ** 31,
  long: (s, v) => typeof v === 'bigint' || Number.isSafeInteger(v),
  float: (s, v) => typeof v === 'number',
  double: (s, v) => typeof v === 'number',
  string: (s, v) => typeof v === 'string',
  bytes: (s, v) => isBinary(v),
  fixed: (s, v) => isBinary(v) && v.length === s.size,
  enum: (s, v) => s.symbols.includes(v),
  array: (s, v) => Array.isArray(v),
  union: (s, v) => s.branches.some(b => fits(b, v)),
  record: (s, v) => isObject(v) && s.fields.every(f => Object.hasOwn(v, f.name) || f.hasDefault),
  map: (s, v) => isObject(v),
}

/** Whether a value can be of a type. Items and values of nested types are not checked. */
const fits = (s, v) => Object.hasOwn(tests, s.type) && tests[s.type](s, v)

function mismatch(s, v, path) {
  const value = typeof v === 'string' || typeof v === 'number' ? ` ${JSON.stringify(v)}` : ''
  const reason = s.type === 'enum'
    ? `is not a symbol of ${s.name}: ${s.symbols.join(', ')}`
    : `is not of type ${typeName(s)}`
  return new Error(`${path || 'the value'}: ${describe(v)}${value} ${reason}.`)
}

function writeUnion(s, v, out, path) {
  let i = s.branches.findIndex(b => fits(b, v))
  const keys = v !== null && typeof v === 'object' ? Object.keys(v) : []
  // {"branch": value} names the branch, unless the object is itself a value of a branch.
  const named = keys.length === 1
    ? s.branches.findIndex(b => typeName(b) === keys[0] || b.name?.split('.').at(-1) === keys[0])
    : -1
  const inner = v?.[keys[0]]
  if (named >= 0 && (i < 0 || s.branches[i].type === 'map' ||
      !Object.hasOwn(s.branches[i].fields ?? {}, keys[0]) && fits(s.branches[named], inner))) {
    i = named
    v = inner
  }
  if (i < 0) {
    const branches = s.branches.map(typeName).join(', ')
    throw new Error(`${path || 'the value'}: ${describe(v)} is none of ${branches}.`)
  }
  writeLong(i, out)
  write(s.branches[i], v, out, path)
}

function writeRecord(s, v, out, path) {
  if (!isObject(v)) throw new Error(`${path || 'the value'}: ${describe(v)}, but ${s.name} is a record.`)
  const prefix = path ? path + '.' : ''
  for (const k of Object.keys(v)) {
    if (!s.fields.some(f => f.name === k)) throw new Error(`${prefix}${k}: ${s.name} has no such field.`)
  }
  for (const f of s.fields) {
    const present = Object.hasOwn(v, f.name)
    if (!present && !f.hasDefault) throw new Error(`${prefix}${f.name}: the field is missing and has no default.`)
    write(f.type, present ? v[f.name] : f.default, out, prefix + f.name)
  }
}

const writers = {
  null: () => {},
  boolean: (s, v, out) => out.push(v ? 1 : 0),
  int: (s, v, out) => writeLong(v, out),
  long: (s, v, out) => writeLong(v, out),
  float: (s, v, out) => out.push(...new Uint8Array(new Float32Array([v]).buffer)),
  double: (s, v, out) => out.push(...new Uint8Array(new Float64Array([v]).buffer)),
  string: (s, v, out) => writeBytes(new TextEncoder().encode(v), out),
  bytes: (s, v, out) => writeBytes(Array.from(v, c => c.charCodeAt(0)), out),
  fixed: (s, v, out) => {
    for (const c of v) out.push(c.charCodeAt(0))
  },
  enum: (s, v, out) => writeLong(s.symbols.indexOf(v), out),
  array: (s, v, out, path) => {
    if (v.length) {
      writeLong(v.length, out)
      v.forEach((x, i) => write(s.items, x, out, `${path}[${i}]`))
    }
    out.push(0)
  },
  map: (s, v, out, path) => {
    const keys = Object.keys(v)
    if (keys.length) {
      writeLong(keys.length, out)
      for (const k of keys) {
        writeBytes(new TextEncoder().encode(k), out)
        write(s.values, v[k], out, `${path}{${k}}`)
      }
    }
    out.push(0)
  },
}

function write(s, v, out, path) {
  if (s.type === 'union') {
    writeUnion(s, v, out, path)
  } else if (s.type === 'record') {
    writeRecord(s, v, out, path)
  } else if (!fits(s, v)) {
    throw mismatch(s, v, path)
  } else {
    writers[s.type](s, v, out, path)
  }
}
