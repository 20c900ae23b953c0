/** Moves that are done before the call returns: the event loop stands still meanwhile, so sockets are asked again and again. */
import { OptError } from "@opt/core";
import type { Move } from "../engine/engine";
import type { Peer } from "./peer";

/** Pauses grow from nothing to this many milliseconds: ranks that share a processor must let each other run. */
const LONGEST_PAUSE = 0.5;
/** The launcher ends this process when another has died; only where it does not, this rank speaks. */
const LAUNCHER_SPEAKS_WITHIN = 1500;
/** Of what a socket brings. */
export const CHUNK = 64 << 10;

const clock = new Int32Array(new SharedArrayBuffer(4));
const pause = (milliseconds: number) => Atomics.wait(clock, 0, 0, milliseconds);

/** @throws OptError IO if a rank that is needed has ended; MISSING if one does not come in time; BAD_SHAPE as `receive` */
export function exchangeNow(
  moves: readonly (Move & { readonly peer: Peer })[],
  peers: readonly Peer[],
  timeout: number,
): void {
  const open = new Set(moves);
  let failed: Error | undefined;
  for (const move of moves) {
    const { kind, peer, tag, bytes } = move;
    peer[kind](tag, bytes, (error) => {
      failed ??= error;
      if (!error) open.delete(move);
    });
  }
  const chunk = Buffer.allocUnsafe(CHUNK);
  const begin = performance.now();
  const lost = new Map<Peer, number>();
  for (let wait = 0; open.size > 0 && failed === undefined; wait = Math.min(LONGEST_PAUSE, wait + 0.01)) {
    const before = open.size;
    const now = performance.now();
    // All of them: one that waits for room lets another go on.
    for (const peer of peers) if (!peer.poll(chunk) && !lost.has(peer)) lost.set(peer, now);
    if (open.size < before) {
      wait = 0;
      continue;
    }
    for (const { peer, rank } of open) {
      if (now - (lost.get(peer) ?? now) > LAUNCHER_SPEAKS_WITHIN)
        throw new OptError(
          "IO",
          "receive",
          `rank ${rank} has ended while this rank needs it.`,
          "See what it wrote last.",
        );
    }
    if (now - begin > timeout) throw late([...open][0]!.rank, timeout);
    if (wait > 0) pause(wait);
  }
  if (failed) throw failed;
}

function late(rank: number, timeout: number): OptError {
  const problem = `this rank waited ${timeout / 1000} s for rank ${rank}, which did not come.`;
  const advice = "All ranks compute with the same layers in the same order; connect({ timeout }) waits longer.";
  return new OptError("MISSING", "exchangeNow", problem, advice);
}
