/** One of N mutants, always the same ones: an area is measured in minutes. */

/** FNV-1a, whose last step mixes high bits into low ones. @param {string} text */
function hash(text) {
  let sum = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193);
  return (sum ^ (sum >>> 15)) >>> 0;
}

/**
 * @typedef {{ start: { line: number, column: number }, end: { line: number, column: number } }} Location
 * @param {{ file: string, location: Location, replacement: string }} mutant a file's path from the root
 * @param {number} sample N
 */
export function isSampled({ file, location: { start, end }, replacement }, sample) {
  const place = [file, start.line, start.column, end.line, end.column, replacement].join(":");
  return hash(place) % sample === 0;
}
