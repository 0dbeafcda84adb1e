// Line by line, what changes between two texts; long stretches without change are folded.
import { html } from './html.js'

let library

/** @returns {Promise<{kind: 'add'|'del'|'same'|'gap', text: string}[]>} */
export async function textDiff(before, after, context = 3) {
  await (library ??= import('../vendor/diff.min.js'))
  const out = []
  const parts = globalThis.Diff.diffLines(before.replace(/\n?$/, '\n'), after.replace(/\n?$/, '\n'))
  parts.forEach((p, i) => {
    const list = p.value.replace(/\n$/, '').split('\n')
    const kind = p.added ? 'add' : p.removed ? 'del' : 'same'
    const head = i === 0 ? 0 : context, tail = i === parts.length - 1 ? 0 : context
    if (kind === 'same' && list.length > head + tail + 1) {
      out.push(...list.slice(0, head).map(text => ({ kind, text })), { kind: 'gap', text: `${list.length - head - tail} unchanged lines` },
        ...(tail ? list.slice(-tail) : []).map(text => ({ kind, text })))
    } else {
      out.push(...list.map(text => ({ kind, text })))
    }
  })
  return out
}

export const changed = list => list.some(l => l.kind === 'add' || l.kind === 'del')

export const diffView = list => html`<div class="diff" tabindex="0" role="region" aria-label="Changes">${list.map(l => html`<div class=${l.kind}>${{ add: '+ ', del: '− ', gap: '⋯ ' }[l.kind] ?? '  '}${l.text}</div>`)}</div>`
