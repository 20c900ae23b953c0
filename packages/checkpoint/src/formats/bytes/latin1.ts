/** Each byte as the character of its number. (TextDecoder's "latin1" is Windows-1252, where 0x80 to 0x9f are other characters.) */
export function latin1(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
