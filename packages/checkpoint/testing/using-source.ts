/** A file or folder of another system, open for as long as a test looks at it. */
import type { TensorSource } from "../src/format/source";
import { openForeign } from "../src/formats/registry";
import { localFileSystem } from "../src/platform/local";

export async function usingSource<T>(path: string, body: (source: TensorSource) => Promise<T> | T): Promise<T> {
  const source = await openForeign(path, localFileSystem);
  try {
    return await body(source);
  } finally {
    await source.close();
  }
}
