/** A page that serves a backend to tests in Node. */
import type { Kernel, Launch, Memory, Spec } from "@opt/core/backend";
import { openWebGpuBackend } from "@opt/kernels-webgpu";
import { decode, type Message } from "./messages";

// A device loads the kernels of the ops that its program has: here of all.
export * from "@opt/core";

const backend = await openWebGpuBackend();
const memories = new Map<number, Memory>();
const kernels = new Map<number, Kernel>();

// TypeScript does not know these yet.
const { fromBase64 } = Uint8Array as unknown as { fromBase64(text: string): Uint8Array };
const textOf = (bytes: Uint8Array) => (bytes as Uint8Array & { toBase64(): string }).toBase64();

/** Carries out messages in order; what the last one reads comes back as base64. */
async function perform(text: string): Promise<string> {
  let result = "";
  const messages = decode<Message[]>(text);
  for (const message of messages) {
    if (message.ask === "allocate") memories.set(message.id, backend.allocate(message.bytes));
    else if (message.ask === "free") backend.free(memories.get(message.id)!);
    else if (message.ask === "write")
      backend.write(memories.get(message.id)!, message.byteOffset, fromBase64(message.base64));
    else if (message.ask === "kernel") kernels.set(message.id, backend.kernel(message.spec as Spec));
    else if (message.ask === "launch") backend.launch(resolved(message.launch) as Launch);
    else if (message.ask === "sync") await backend.sync();
    else result = textOf(await backend.read(memories.get(message.id)!, message.byteOffset, message.bytes));
  }
  return result;
}

/** A launch with its memories and kernel in the place of their numbers. */
function resolved(part: unknown): unknown {
  if (typeof part !== "object" || part === null) return part;
  if ("$memory" in part) return memories.get(part.$memory as number);
  if ("$kernel" in part) return kernels.get(part.$kernel as number);
  if (Array.isArray(part)) return part.map(resolved);
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, resolved(value)]));
}

declare global {
  var performMessages: typeof perform;
}
globalThis.performMessages = perform;
