/** HTTP where `fetch` is all there is. */
import { fillFrom } from "../stores/response";
import type { HttpAnswer, HttpRequest } from "./platform";

export async function fetchRequest(url: URL, { body, into, ...asked }: HttpRequest): Promise<HttpAnswer> {
  const response = await fetch(url, { ...asked, ...(body && { body: body as Uint8Array<ArrayBuffer> }) });
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    body: into && response.ok ? await filled(into, response) : new Uint8Array(await response.arrayBuffer()),
  };
}

async function filled(target: Uint8Array, response: Response): Promise<Uint8Array> {
  return target.subarray(0, await fillFrom(response, target));
}
