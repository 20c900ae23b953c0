/** Looks over JSON text before it is parsed: JSON.parse takes any depth, and keeps the last of two equal keys silently. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** What is wrong with the text, or undefined. What is no JSON at all is left to JSON.parse. */
export function problemOfJson(text: string, maxDepth: number): string | undefined {
  const open: (Set<string> | undefined)[] = [];
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char === 0x7b || char === 0x5b) {
      if (open.length >= maxDepth) return `it is nested deeper than ${maxDepth}`;
      open.push(char === 0x7b ? new Set() : undefined);
    } else if (char === 0x7d || char === 0x5d) open.pop();
    else if (char === QUOTE) {
      const end = endOfString(text, i);
      if (end < 0) return undefined;
      const keys = open.at(-1);
      if (keys && isKey(text, end)) {
        const raw = text.slice(i, end);
        const key = raw.includes("\\") ? unescaped(raw) : raw;
        if (keys.has(key)) return `key ${key} occurs twice`;
        keys.add(key);
      }
      i = end - 1;
    }
  }
  return undefined;
}

/** Behind the closing quote; -1 where there is none. */
function endOfString(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
  return -1;
}

function isKey(text: string, position: number): boolean {
  let next = position;
  while (" \t\n\r".includes(text.charAt(next)) && next < text.length) next++;
  return text.charAt(next) === ":";
}

/** Equal keys may be written with different escapes. */
function unescaped(raw: string): string {
  try {
    return JSON.stringify(JSON.parse(raw));
  } catch {
    return raw;
  }
}
