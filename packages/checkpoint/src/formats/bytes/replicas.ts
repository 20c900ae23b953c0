/** A box that several files hold: it is read out of one of them and compared with the others, so that no difference is passed over. */
import { platform } from "#platform";
import type { SourceBox } from "../../format/source";

const PIECE = 64 * 1024;

/** `reject` makes the error for the replica, by its number among `others`, that holds other bytes. */
export function comparedBox(box: SourceBox, others: readonly SourceBox[], reject: (other: number) => Error): SourceBox {
  const { offset, size, byteLength, file } = box;
  return {
    ...{ offset, size, byteLength, file },
    async read(target, start) {
      await box.read(target, start);
      const piece = new Uint8Array(Math.min(PIECE, target.length));
      for (const [i, other] of others.entries()) {
        for (let done = 0; done < target.length; done += PIECE) {
          const mine = target.subarray(done, done + PIECE);
          const theirs = piece.subarray(0, mine.length);
          await other.read(theirs, start + done);
          if (!platform.sameBytes(mine, theirs)) throw reject(i);
        }
      }
    },
  };
}
