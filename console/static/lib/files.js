// Files that the user saves or opens.
import { html } from './html.js'
import { icon } from './icons.js'

/** Saves text or bytes as a file. */
export function download(name, content, type = 'application/json') {
  const a = document.createElement('a')
  a.href = URL.createObjectURL(new Blob([content], { type }))
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(a.href), 10000)
}

/** An area where the user drops a file or chooses one; calls open(text, name). */
export function dropZone(text, accept, open) {
  const read = async file => {
    if (file) open(await file.text(), file.name)
  }
  const dragover = e => {
    e.preventDefault()
    e.currentTarget.classList.add('over')
  }
  const drop = e => {
    e.preventDefault()
    e.currentTarget.classList.remove('over')
    read(e.dataTransfer.files[0])
  }
  const change = async e => {
    await read(e.target.files[0])
    e.target.value = '' // the same file can be chosen again
  }
  return html`
    <label class="drop" @dragover=${dragover} @dragleave=${e => e.currentTarget.classList.remove('over')} @drop=${drop}>
      ${icon('down', 20)}
      <span>${text}</span>
      <input type="file" class="visually-hidden" accept=${accept} @change=${change}>
    </label>`
}
