/** HTTP where `fetch` is all there is. */
import type { HttpAnswer, HttpRequest } from "./platform";

export async function fetchRequest(url: URL, { body, into, ...asked }: HttpRequest): Promise<HttpAnswer> {
  const response = await fetch(url, { ...asked, ...(body && { body: body as Uint8Array<ArrayBuffer> }) });
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    body: into && response.ok ? await filled(into, response) : new Uint8Array(await response.arrayBuffer()),
  };
}

/** As much of `target` as the answer has; what is too much is dropped. */
async function filled(target: Uint8Array, response: Response): Promise<Uint8Array> {
  let length = 0;
  const reader = response.body?.getReader();
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
    target.set(piece.value.subarray(0, target.length - length), length);
    length = Math.min(target.length, length + piece.value.length);
  }
  return target.subarray(0, length);
}
