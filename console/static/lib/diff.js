// The lines that differ between two texts. Long parts without changes are folded.
import { html } from './html.js'

let library

/** @returns {Promise<{kind: 'add'|'del'|'same'|'gap', text: string}[]>} */
export async function textDiff(before, after, context = 3) {
  await (library ??= import('../vendor/diff.min.js'))
  const out = []
  const parts = globalThis.Diff.diffLines(before.replace(/\n?$/, '\n'), after.replace(/\n?$/, '\n'))
  parts.forEach((part, i) => {
    const lines = part.value.replace(/\n$/, '').split('\n')
    const kind = part.added ? 'add' : part.removed ? 'del' : 'same'
    const list = lines.map(text => ({ kind, text }))
    const head = i === 0 ? 0 : context
    const tail = i === parts.length - 1 ? 0 : context
    const folded = list.length - head - tail
    if (kind === 'same' && folded > 1) {
      const gap = { kind: 'gap', text: `${folded} unchanged lines` }
      out.push(...list.slice(0, head), gap, ...list.slice(list.length - tail))
    } else {
      out.push(...list)
    }
  })
  return out
}

export const changed = list => list.some(l => l.kind === 'add' || l.kind === 'del')

const signs = { add: '+ ', del: '− ', gap: '⋯ ' }
const lineView = l => html`<div class=${l.kind}>${signs[l.kind] ?? '  '}${l.text}</div>`

export const diffView = list => html`
  <div class="diff" tabindex="0" role="region" aria-label="Changes">${list.map(lineView)}</div>`
