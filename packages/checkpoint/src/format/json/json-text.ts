/** Looks over JSON text before it is parsed: JSON.parse takes any depth, and keeps the last of two equal keys silently. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const [OPEN, CLOSE, OPEN_LIST, CLOSE_LIST] = [0x7b, 0x7d, 0x5b, 0x5d];

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

/** Where the string ends; without a closing quote, the end of the bytes. */
function closingQuote(bytes: Uint8Array, begin: number): number {
  for (let end = bytes.indexOf(QUOTE, begin + 1); end >= 0; end = bytes.indexOf(QUOTE, end + 1)) {
    let slashes = 0;
    while (bytes[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return bytes.length;
}

/** What is wrong with the text, or undefined. What is no JSON at all is left to JSON.parse. */
export function problemOfJson(text: string, maxDepth: number, maxKeys = Number.POSITIVE_INFINITY): string | undefined {
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
        if (keys.size > maxKeys) return `an object has more than ${maxKeys} keys`;
      }
      i = end - 1;
    }
  }
  return undefined;
}

const PIECE = 64 << 10;

/** The members of the object, in pieces that end between two of them. Throws what `fail` makes, also for a member longer than `mostOf` says. */
export function* piecesOfObject(
  bytes: Uint8Array,
  mostOf: (begin: number) => number,
  fail: (problem: string) => Error,
): Generator<Uint8Array> {
  const piece = (begin: number, end: number) => {
    const members = bytes.subarray(begin, end);
    // Only an object without members has a piece without any.
    if (members.every(isSpace) && (begin > 1 || bytes[end] === COMMA)) throw fail("a member that is missing");
    return members;
  };
  if (bytes[0] !== OPEN) throw fail("no { at the start");
  let [depth, begin, member] = [0, 1, 1];
  let most = mostOf(member);
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte === QUOTE) i = closingQuote(bytes, i);
    else if (byte === OPEN || byte === OPEN_LIST) depth++;
    else if (byte === CLOSE || byte === CLOSE_LIST) {
      if (--depth > 0) continue;
      if (byte !== CLOSE || bytes.subarray(i + 1).some((rest) => !isSpace(rest))) throw fail("no } at the end");
      return yield piece(begin, i);
    } else if (byte === COMMA && depth === 1) {
      member = i + 1;
      most = mostOf(member);
      if (i - begin < PIECE) continue;
      yield piece(begin, i);
      begin = member;
    }
    if (i - member > most) throw fail("a member that is too long");
  }
  throw fail("no } at the end");
}

/** Behind the closing quote; -1 without one. */
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
