/** A backend that lives in a page: calls are collected, and travel when something is read. */
import type { Backend, Kernel, Kind, Launch, Memory, Spec } from "@opt/core/backend";
import type { Page } from "playwright-core";
import { encode, type Message } from "./messages";

interface Remote {
  readonly id: number;
}

export class RemoteBackend implements Backend {
  readonly name = "webgpu";
  readonly dtypes = ["f32"] as const;
  readonly exact = false;
  #nextId = 0;
  #messages: Message[] = [];
  #last: Promise<unknown> = Promise.resolve();

  constructor(private readonly page: Page) {}

  allocate(bytes: number): Memory & Remote {
    const id = this.#nextId++;
    this.#messages.push({ ask: "allocate", id, bytes });
    return { id, bytes };
  }

  free(memory: Memory): void {
    this.#messages.push({ ask: "free", id: (memory as Memory & Remote).id });
  }

  write(memory: Memory, byteOffset: number, bytes: Uint8Array): void {
    const base64 = Buffer.from(bytes).toString("base64");
    this.#messages.push({ ask: "write", id: (memory as Memory & Remote).id, byteOffset, base64 });
  }

  kernel<K extends Kind>(spec: Spec<K>): Kernel<K> {
    const id = this.#nextId++;
    this.#messages.push({ ask: "kernel", id, spec });
    return { spec, id } as Kernel<K> & Remote;
  }

  launch(launch: Launch): void {
    const numbered = (part: unknown): unknown => {
      if (typeof part !== "object" || part === null) return part;
      if (Array.isArray(part)) return part.map(numbered);
      const entries = Object.entries(part).map(([key, value]) => {
        if (key === "memory") return [key, { $memory: value.id }];
        if (key === "kernel") return [key, "id" in value ? { $kernel: value.id } : numbered(value)];
        return [key, numbered(value)];
      });
      return Object.fromEntries(entries);
    };
    this.#messages.push({ ask: "launch", launch: numbered(launch) });
  }

  async read(memory: Memory, byteOffset: number, bytes: number): Promise<Uint8Array> {
    this.#messages.push({ ask: "read", id: (memory as Memory & Remote).id, byteOffset, bytes });
    return new Uint8Array(Buffer.from(await this.#send(), "base64"));
  }

  async sync(): Promise<void> {
    this.#messages.push({ ask: "sync" });
    await this.#send();
  }

  close(): void {}

  #send(): Promise<string> {
    const text = encode(this.#messages);
    this.#messages = [];
    const answer = this.#last.then(() => this.page.evaluate((messages) => globalThis.performMessages(messages), text));
    this.#last = answer.catch(() => {});
    return answer;
  }
}
