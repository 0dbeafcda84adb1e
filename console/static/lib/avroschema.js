// Avro schemas: parsing with resolved names, and example values.
const primitives = new Set(['null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string'])

/**
 * Parses a schema and resolves all names in it.
 * @param {string} text
 * @param {string[]} references schemas that define further names, each after the ones that it needs
 */
export function parseSchema(text, references = []) {
  const names = new Map()
  for (const r of references) resolve(parseText(r), '', names)
  return resolve(parseText(text), '', names)
}

function parseText(text) {
  try {
    return JSON.parse(text)
  } catch {
    if (/^\s*[\w.]+\s*$/.test(text)) return text.trim()
    throw new Error('The schema is not JSON.')
  }
}

function resolve(s, namespace, names) {
  if (typeof s === 'string') return resolveName(s, namespace, names)
  if (Array.isArray(s)) return { type: 'union', branches: s.map(b => resolve(b, namespace, names)) }
  if (s === null || typeof s !== 'object') throw new Error('The schema contains a value that is not a type.')
  if (typeof s.type !== 'string') return resolve(s.type, namespace, names)
  if (primitives.has(s.type)) return { type: s.type, logical: s.logicalType }
  if (s.type === 'array') return { type: 'array', items: resolve(s.items, namespace, names) }
  if (s.type === 'map') return { type: 'map', values: resolve(s.values, namespace, names) }
  if (['record', 'error', 'enum', 'fixed'].includes(s.type)) return resolveNamed(s, namespace, names)
  return resolve(s.type, namespace, names)
}

function resolveName(name, namespace, names) {
  if (primitives.has(name)) return { type: name }
  const full = name.includes('.') || !namespace ? name : `${namespace}.${name}`
  const type = names.get(full) ?? names.get(name)
  if (!type) throw new Error(`The schema uses the type ${name}, but does not define it.`)
  return type
}

function resolveNamed(s, namespace, names) {
  const full = s.name.includes('.') ? s.name : [s.namespace ?? namespace, s.name].filter(Boolean).join('.')
  const own = full.includes('.') ? full.slice(0, full.lastIndexOf('.')) : ''
  const out = { type: s.type === 'error' ? 'record' : s.type, name: full, symbols: s.symbols, size: s.size }
  names.set(full, out) // before its fields, which may refer to it
  if (out.type === 'record') {
    out.fields = s.fields.map(f => ({
      name: f.name,
      type: resolve(f.type, own, names),
      default: f.default,
      hasDefault: 'default' in f,
    }))
  }
  return out
}

/** An example value of a type, for the user to edit. */
export function sample(s, depth = 0) {
  switch (s.type) {
    case 'null':
      return null
    case 'boolean':
      return false
    case 'int':
    case 'long':
      return s.logical === 'timestamp-millis' ? Date.now() : 0
    case 'float':
    case 'double':
      return 0
    case 'enum':
      return s.symbols[0]
    case 'fixed':
      return '\0'.repeat(s.size)
    case 'array':
      return depth > 4 ? [] : [sample(s.items, depth + 1)]
    case 'map':
      return {}
    case 'union':
      return sample(s.branches[0], depth)
    case 'record': {
      if (depth > 6) return {}
      const value = f => f.hasDefault ? f.default : sample(f.type, depth + 1)
      return Object.fromEntries(s.fields.map(f => [f.name, value(f)]))
    }
  }
  return ''
}
