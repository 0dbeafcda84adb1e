// The script of the documentation: a copy button on each code block, and the search. Pages work without it.
'use strict'

const script = document.currentScript
const { base, index: indexURL } = script.dataset

/** Creates an element with properties and children. */
function element(name, properties = {}, ...children) {
  const e = Object.assign(document.createElement(name), properties)
  e.append(...children)
  return e
}

// --- copy ---

async function copy(button, code) {
  try {
    await navigator.clipboard.writeText(code.textContent)
    button.textContent = 'Copied'
  } catch { // without HTTPS, browsers have no clipboard: select the text instead
    getSelection().selectAllChildren(code)
    button.textContent = 'Selected'
  }
  setTimeout(() => { button.textContent = 'Copy' }, 2000)
}

for (const block of document.querySelectorAll('.code')) {
  const button = element('button', { type: 'button', className: 'copy', textContent: 'Copy' })
  button.addEventListener('click', () => copy(button, block.querySelector('code')))
  block.append(button)
}

// --- search ---

const maxResults = 20
const weights = [1, 2, 6, 20] // as in search.go: body, repeated, heading, title

let loading // promise of the index

function load() {
  loading ??= fetch(indexURL).then(response => {
    if (!response.ok) throw new Error(`status ${response.status}`)
    return response.json()
  }).catch(error => {
    loading = undefined
    throw error
  })
  return loading
}

const termsOf = text => text.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []

/** Returns the score of each part that contains the term, or a term that begins with it. */
function scores(index, term) {
  const found = new Map()
  const singular = term.length > 3 && term.endsWith('s') ? term.slice(0, -1) : term
  for (const [candidate, postings] of Object.entries(index.terms)) {
    if (!candidate.startsWith(term) && candidate !== singular) continue
    const factor = candidate === term ? 3 : candidate === singular ? 2 : 1
    let part = 0
    for (const n of postings) {
      part += n >> 2
      const score = factor * weights[n & 3] / Math.log2(2 + postings.length)
      found.set(part, Math.max(found.get(part) ?? 0, score))
    }
  }
  return found
}

/** Returns the best parts that contain all terms of the query. */
function search(index, query) {
  const terms = termsOf(query).filter(t => !index.stop.includes(t))
  if (!terms.length) return []
  const perTerm = terms.map(t => scores(index, t))
  const parts = [...perTerm[0].keys()].filter(part => perTerm.every(m => m.has(part)))
  return parts.map(part => {
    const [page, anchor, heading, excerpt] = index.parts.slice(4 * part, 4 * part + 4)
    const [location, title, section] = index.pages[page]
    const whole = title.toLowerCase() === query.trim().toLowerCase() && !anchor ? 1000 : 0
    return {
      url: base + location + (anchor ? `#${anchor}` : ''), title, heading, section, excerpt,
      score: whole + perTerm.reduce((sum, m) => sum + m.get(part), 0),
    }
  }).sort((a, b) => b.score - a.score || a.url.localeCompare(b.url)).slice(0, maxResults)
}

const result = r => element('li', {},
  element('a', { href: r.url },
    element('b', { textContent: r.heading ? `${r.title} › ${r.heading}` : r.title }),
    element('span', { textContent: r.excerpt ? `${r.section}: ${r.excerpt}` : r.section })))

function addSearch(place) {
  const input = element('input', { type: 'search', placeholder: 'Search', maxLength: 200, autocomplete: 'off' })
  input.setAttribute('aria-label', 'Search the documentation')
  const list = element('ul', { className: 'results', hidden: true })
  list.setAttribute('aria-label', 'Search results')
  const state = element('p')
  state.setAttribute('role', 'status')
  const show = (found, text) => {
    list.replaceChildren(...found.map(result))
    state.textContent = text
    if (text) list.append(element('li', {}, state))
    list.hidden = false
    list.dataset.query = input.value
  }
  const run = async () => {
    const query = input.value
    if (!termsOf(query).length) {
      list.hidden = true
      return
    }
    try {
      const index = await load()
      if (query !== input.value) return // the user has typed on
      const found = search(index, query)
      show(found, found.length ? '' : 'No page has all of these words.')
    } catch (error) {
      show([], `The search index cannot be loaded: ${error.message}`)
    }
  }
  const move = (event, step) => {
    const stops = [input, ...list.querySelectorAll('a')]
    const next = stops[stops.indexOf(document.activeElement) + step]
    if (!next) return
    event.preventDefault()
    next.focus()
  }
  input.addEventListener('focus', () => load().catch(() => {})) // run shows the error
  input.addEventListener('input', run)
  place.addEventListener('keydown', event => {
    if (event.key === 'ArrowDown') move(event, 1)
    if (event.key === 'ArrowUp') move(event, -1)
    if (event.key === 'Enter' && event.target === input) list.querySelector('a')?.click()
    if (event.key === 'Escape') {
      list.hidden = true
      input.focus()
    }
  })
  document.addEventListener('click', event => { if (!place.contains(event.target)) list.hidden = true })
  document.addEventListener('keydown', event => {
    const typing = event.target.closest?.('input, textarea, select')
    if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    input.focus()
  })
  place.append(input, list)
}

addSearch(document.getElementById('site-search'))
