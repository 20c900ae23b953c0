/** A number for many bytes: whether ranks hold the same ones. Not against who wants to deceive. */

const PRIME_A = 0x01000193;
const PRIME_B = 0x85ebca6b;

/** 64 bits, as text: two multiplicative hashes over words of 32 bits. */
export function digest(bytes: Uint8Array): string {
  const whole = bytes.byteLength >> 2;
  // Copied where it does not begin at a word.
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  const words = new Uint32Array(aligned.buffer, aligned.byteOffset, whole);
  let a = 0x811c9dc5 ^ bytes.byteLength;
  let b = 0x9747b28c;
  for (let i = 0; i < whole; i++) {
    const word = words[i]!;
    a = Math.imul(a ^ word, PRIME_A);
    b = Math.imul((b << 13) | (b >>> 19), 5) + (Math.imul(word, PRIME_B) | 0);
  }
  for (let i = 4 * whole; i < bytes.byteLength; i++) {
    a = Math.imul(a ^ bytes[i]!, PRIME_A);
    b = Math.imul(b ^ bytes[i]!, PRIME_B);
  }
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}
