import { build } from "esbuild";

/**
 * The JavaScript of a program of this folder, in one piece: a process of its own is ready in a few milliseconds, and nothing of the tests'
 * runner is in its memory.
 */
export async function buildProgram(name: string): Promise<string> {
  const built = await build({
    entryPoints: [new URL(name, import.meta.url).pathname],
    bundle: true,
    platform: "node",
    format: "esm",
    conditions: ["@opt/source"],
    write: false,
    // Some libraries still call require.
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    logLevel: "silent",
  });
  return built.outputFiles[0]!.text;
}
