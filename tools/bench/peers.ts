/** Loads other frameworks from `tools/bench/peers`, which has a lock file of its own. */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("./peers/package.json", import.meta.url));

// biome-ignore lint/suspicious/noExplicitAny: peers are not installed where types are checked
export async function importPeer(name: string): Promise<any> {
  let path: string;
  try {
    path = require.resolve(name);
  } catch {
    return `${name} is not installed`;
  }
  return import(pathToFileURL(path).href);
}
