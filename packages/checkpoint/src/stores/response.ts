/** The body of an answer as it arrives, piece by piece: never held twice. */

/** Fills as much of `target` as the answer has; returns how many bytes came, what was too much for it included. */
export async function fillFrom(response: Response, target: Uint8Array): Promise<number> {
  let length = 0;
  const reader = response.body?.getReader();
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
    if (length < target.length) target.set(piece.value.subarray(0, target.length - length), length);
    length += piece.value.length;
  }
  return length;
}
