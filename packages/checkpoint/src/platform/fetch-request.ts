/** HTTP where `fetch` is all there is. */
import { fillFrom } from "../stores/response";
import type { HttpAnswer, HttpRequest } from "./platform";

export async function fetchRequest(url: URL, { body, into, ...asked }: HttpRequest): Promise<HttpAnswer> {
  // Memory of the cpu device may be in buffers that fetch does not take.
  const isResizable = (body?.buffer as { resizable?: boolean } | undefined)?.resizable;
  const sent = (isResizable ? body!.slice() : body) as Uint8Array<ArrayBuffer> | undefined;
  const response = await fetch(url, { ...asked, ...(sent && { body: sent }) });
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    body: into && response.ok ? await filled(into, response) : new Uint8Array(await response.arrayBuffer()),
  };
}

async function filled(target: Uint8Array, response: Response): Promise<Uint8Array> {
  return target.subarray(0, await fillFrom(response, target));
}
