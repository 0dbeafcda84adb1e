// Icons on a grid of 24 by 24, drawn as one stroke.
import { html, svg } from './html.js'

const paths = {
  overview: 'M4 11.5 12 4l8 7.5M6 10v9h12v-9M10 19v-5h4v5',
  clusters: 'M12 3 4 7.5v9L12 21l8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9',
  instances: 'M4 5h16v5H4zM4 14h16v5H4zM8 7.5h.01M8 16.5h.01',
  topics:
    'M4 7c2.7-2.4 5.3-2.4 8 0s5.3 2.4 8 0M4 12c2.7-2.4 5.3-2.4 8 0s5.3 2.4 8 0' +
    'M4 17c2.7-2.4 5.3-2.4 8 0s5.3 2.4 8 0',
  schemas:
    'M8 4H6.5A1.5 1.5 0 0 0 5 5.5v4L3.5 12 5 14.5v4A1.5 1.5 0 0 0 6.5 20H8' +
    'M16 4h1.5A1.5 1.5 0 0 1 19 5.5v4l1.5 2.5-1.5 2.5v4a1.5 1.5 0 0 1-1.5 1.5H16',
  groups:
    'M12 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM5.5 20a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z' +
    'M18.5 20a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM12 8v4M5.5 15l6.5-3 6.5 3',
  keys: 'M14 10a4 4 0 1 0-3.5 4L13 11.5M10.7 13.3 4 20v0h4v-2.5h2.5V15',
  accounts: 'M5 8h14v11H5zM9 13h.01M15 13h.01M12 8V4M9 4h6',
  users: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.5c1-4 4-6 7.5-6s6.5 2 7.5 6',
  roles: 'M12 3l7.5 3v5.5c0 4.5-3 8-7.5 9.5-4.5-1.5-7.5-5-7.5-9.5V6zM9 12l2 2 4-4',
  system: 'M3 12h4l2.5-7 5 14 2.5-7h4',
  reference: 'M8 7l-5 5 5 5M16 7l5 5-5 5M13.5 5l-3 14',
  docs: 'M12 6.5C10 5 7.5 4.500 4 4.500v13c3.5 0 6 .5 8 2 2-1.500 4.5-2 8-2v-13c-3.5 0-6 .5-8 2zM12 6.500v13',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20 20',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  x: 'M6 6l12 12M18 6 6 18',
  plus: 'M12 5v14M5 12h14',
  sun:
    'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.300l1.4 1.400' +
    'M17.3 17.300l1.4 1.400M5.3 18.700l1.4-1.400M17.3 6.700l1.4-1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
  auto: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18M12 7l6 .5M12 12h9M12 17l6-.5',
  menu: 'M4 7h16M4 12h16M4 17h16',
  activity: 'M5 4h14v16H5zM8.5 9h7M8.5 13h7M8.5 17h4',
  lock: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3',
  warn: 'M12 4 3 19.5h18zM12 10v4.5M12 17h.01',
  down: 'M12 4v11M7 10.5l5 5 5-5M5 20h14',
  chevron: 'M9 6l6 6-6 6',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5.5M13.5 11v5.5',
  refresh: 'M19.5 12a7.5 7.5 0 1 1-2.2-5.300L20 9.5M20 4.5v5h-5',
  link: 'M10 14a4 4 0 0 0 5.7 0l3-3A4 4 0 0 0 13 5.300l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.700l1-1',
  out: 'M10 4H5v16h5M14 8l4 4-4 4M18 12H9',
  code: 'M8 8l-4 4 4 4M16 8l4 4-4 4',
  play: 'M7 5l11 7-11 7z',
  pause: 'M8 5v14M16 5v14',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3.5 2',
  empty: 'M4 13l3-8h10l3 8v6H4zM4 13h5l1 2.5h4l1-2.5h5',
}

/** An icon. Screen readers skip it: the text next to it or the label has the meaning. */
export const icon = (name, size = 18) =>
  html`<svg class="icon" viewBox="0 0 24 24" width=${size} height=${size} aria-hidden="true">
    ${svg`<path d=${paths[name] ?? paths.warn}/>`}
  </svg>`

export const logo = (size = 26) =>
  html`<svg class="logo" viewBox="0 0 32 32" width=${size} height=${size} aria-hidden="true">
    <rect width="32" height="32" rx="8"/>
    <path d="M6 11.5c3.3-3 6.7-3 10 0s6.7 3 10 0M6 17.5c3.3-3 6.7-3 10 0s6.7 3 10 0"/>
    <path class="last" d="M6 23.5c3.3-3 6.7-3 10 0"/>
  </svg>`
