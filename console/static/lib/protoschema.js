// Protobuf schemas: the part of the language that names the fields of messages. The
// registry's text is canonical: no comments, one declaration per line.
const comments = /\/\*[\s\S]*?\*\/|\/\/[^\n]*/g
const token = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\w.]+|[^\s]/g

class Parser {
  constructor(text, types) {
    this.tokens = text.replace(comments, ' ').match(token) ?? []
    this.types = types
    this.i = 0
  }

  /** The token at an offset from the current one. */
  peek(offset = 0) {
    return this.tokens[this.i + offset]
  }

  get done() {
    return this.i >= this.tokens.length
  }

  /** Skips the rest of a declaration: to its semicolon, or to the end of its block. */
  skip() {
    for (let depth = 0; !this.done; this.i++) {
      const t = this.peek()
      if (t === '{' || t === '[') depth++
      if (t === '}' || t === ']') depth--
      if (depth === 0 && (t === '}' || t === ';')) {
        this.i++
        return
      }
    }
  }

  parse() {
    const top = []
    let scope = ''
    while (!this.done) {
      const t = this.peek()
      if (t === 'package') {
        scope = this.peek(1)
        this.skip()
      } else if (t === 'message') {
        this.i++
        this.message(scope, top)
      } else if (t === 'enum') {
        this.i++
        this.enumeration(scope)
      } else {
        this.skip()
      }
    }
    return { top, types: this.types }
  }

  enumeration(scope) {
    const values = new Map()
    this.types.set(fullName(scope, this.peek()), { kind: 'enum', values })
    this.i += 2
    while (!this.done && this.peek() !== '}') {
      if (this.peek(1) === '=') {
        const negative = this.peek(2) === '-'
        values.set(Number((negative ? '-' : '') + this.peek(negative ? 3 : 2)), this.peek())
      }
      this.skip()
    }
    this.i++
  }

  message(scope, siblings) {
    const name = fullName(scope, this.peek())
    const m = { kind: 'message', name, fields: new Map(), nested: [] }
    this.types.set(name, m)
    siblings.push(m)
    this.i += 2
    this.body(m)
    this.i++
  }

  body(m) {
    while (!this.done && this.peek() !== '}') {
      const t = this.peek()
      if (t === 'message') {
        this.i++
        this.message(m.name, m.nested)
      } else if (t === 'enum') {
        this.i++
        this.enumeration(m.name)
      } else if (t === 'oneof' && this.peek(2) === '{') {
        this.i += 3
        this.body(m)
        this.i++
      } else {
        if (!['option', 'reserved', 'extensions', 'extend', ';'].includes(t)) this.field(m)
        this.skip()
      }
    }
  }

  field(m) {
    let repeated = false
    if (['optional', 'required', 'repeated'].includes(this.peek()) && this.peek(2) !== '=') {
      repeated = this.peek() === 'repeated'
      this.i++
    }
    const scope = m.name
    if (this.peek() === 'map' && this.peek(1) === '<') { // map < key , value > name = number
      m.fields.set(Number(this.peek(8)), { name: this.peek(6), map: [this.peek(2), this.peek(4)], scope })
    } else { // type name = number
      m.fields.set(Number(this.peek(3)), { name: this.peek(1), type: this.peek(), repeated, scope })
    }
  }
}

const fullName = (scope, name) => [scope, name].filter(Boolean).join('.')

/** The messages and enums of a file by their full names, and the top-level messages in their order. */
export const parseProto = (text, types = new Map()) => new Parser(text, types).parse()

/** Finds a type by its name as it is written in a scope. */
export function findType(types, name, scope) {
  if (name.startsWith('.')) return types.get(name.slice(1))
  for (let s = scope; ; s = s.includes('.') ? s.slice(0, s.lastIndexOf('.')) : '') {
    const type = types.get(s ? `${s}.${name}` : name)
    if (type || !s) return type
  }
}
