/** What a given-up operation's engine does later reaches no other tensor. */
import { tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import type { Engine } from "../engine/engine";
import { Communicator } from "./communicator";
import { Group } from "./group";

it("leaves the memory of a sum that was given up to what may still come", async () => {
  const late: Uint8Array[] = [];
  const engine: Engine = {
    name: "late",
    rank: 0,
    size: 2,
    send: async () => {},
    receive: (_from, _tag, into) => new Promise(() => late.push(into)),
    close: async () => {},
  };
  const world = { engine, timeout: 20, nextGroup: 256, nextMeshGroup: 1, isClosed: false };
  const communicator = new Communicator(new Group(world, "world", [0, 1], 0));
  const x = tensor([1, 2, 3, 4]);
  await expectCode("MISSING", () => communicator.allReduce(x));
  await expectCode("MISSING", () => communicator.recv(x, 1));
  x.dispose();
  const others = Array.from({ length: 8 }, () => [tensor([1, 2]), tensor([1, 2, 3, 4])]).flat();
  expect(late.length).toBeGreaterThan(1);
  for (const into of late) into.fill(255);
  for (const other of others) expect(other.tolist()).toEqual([1, 2, 3, 4].slice(0, other.size));
});
