/**
 * How ranks that share no communicator agree: they meet in a folder beside the step, and messages are files there.
 *
 * Names that users give (a job's id) come again in every restart, so a name never identifies a save. The first rank to come makes an
 * attempt, a name that occurs once in the world, and points at it with a file that only one can create; the others join it. A rank
 * that finds the attempt of a dead process, or its own place taken by one, points at a new attempt; whoever had joined the old one
 * follows. Nobody writes before every rank has answered that it is ready, after every rank had joined: so all ranks of an attempt
 * were alive at one moment, and no file of an earlier life can be among theirs.
 */

import { check, OptError } from "@opt/core";
import { diskError, type FileSystem, isMissing } from "../../stores/file-system";
import { join } from "../../stores/path";
import { sleep } from "../../stores/timers";
import { readText } from "../step/leftovers";
import { type Attempt, describeOwner, endAttempt, newAttempt } from "../step/owner";
import { type Invitation, newestGeneration, numbered, pointerPrefix } from "./invitation";
import { Meeting } from "./meeting";

/** Comes together with every other rank. Throws MISSING (a rank does not come), BAD_ARGUMENT (they disagree), IO (a rank has died). */
export async function meet(invitation: Invitation): Promise<Meeting> {
  const deadline = performance.now() + invitation.patience;
  const { unfinished } = invitation.fileSystem;
  check(
    (await unfinished?.isFenced(join(invitation.folder, pointerPrefix(invitation)))) ?? true,
    "UNSUPPORTED",
    "saveCheckpoint",
    () => "ranks meet where a file can be created once only, and this store does not keep that (If-None-Match: *).",
    "Give the ranks a communicator.",
  );
  for (;;) {
    const meeting = await enter(invitation);
    try {
      if (await meeting.assemble(deadline)) return meeting;
    } catch (error) {
      throw await giveUp(meeting, error);
    }
    await meeting.leave();
  }
}

async function enter(invitation: Invitation): Promise<Meeting> {
  const { fileSystem, folder } = invitation;
  try {
    await fileSystem.makeFolder(folder);
    for (;;) {
      const generation = await newestGeneration(invitation);
      const meeting =
        (generation > 0 && (await joinLife(invitation, generation))) || (await beginLife(invitation, generation + 1));
      if (meeting) return meeting;
    }
  } catch (error) {
    throw diskError(error, folder, "agreeing");
  }
}

/** The error to throw. What the disk did not let this rank say, the others would wait for. */
export async function giveUp(meeting: Meeting, error: unknown): Promise<Error> {
  const known = diskError(error, meeting.folder, "agreeing");
  if (known !== error) await meeting.fail(known);
  await meeting.leave();
  return known;
}

/** Undefined where another rank was quicker. */
async function beginLife(invitation: Invitation, generation: number): Promise<Meeting | undefined> {
  const { fileSystem, folder, terms } = invitation;
  const attempt = newAttempt();
  const meeting = new Meeting(invitation, attempt, generation, attempt);
  // The place comes before what points at it: a pointer to nothing then means that the attempt is over.
  await fileSystem.makeFolder(meeting.messages);
  await fileSystem.createOnce(join(meeting.messages, `${numbered(invitation.rank)}.here`), attempt);
  const pointer = join(folder, pointerPrefix(invitation) + generation);
  if (await fileSystem.createOnce(pointer, `${attempt} ${terms}\n`)) return meeting;
  await meeting.giveWay();
  return undefined;
}

/** Undefined where that attempt is over: it failed, ended, or one of its processes has died. */
async function joinLife(invitation: Invitation, generation: number): Promise<Meeting | undefined> {
  const { fileSystem, folder, rank, terms } = invitation;
  const pointer = await readPointer(fileSystem, join(folder, pointerPrefix(invitation) + generation));
  if (!pointer) return undefined;
  const self = newAttempt();
  const meeting = new Meeting(invitation, pointer.attempt, generation, self);
  try {
    if (await meeting.isOver()) return undefined;
    if (pointer.terms !== terms) {
      if (!(await meeting.answers(await meeting.firstMember()))) return undefined;
      const problem = `all ranks must say the same, but rank ${rank} says ${terms}; another says ${pointer.terms}.`;
      throw await meeting.fail(new OptError("BAD_ARGUMENT", "saveCheckpoint", problem, "Start all ranks alike."));
    }
    if (!(await fileSystem.createOnce(join(meeting.messages, `${numbered(rank)}.here`), self))) {
      if (!(await meeting.answers(rank))) return undefined;
      const other = describeOwner(await readText(fileSystem, join(meeting.messages, `${numbered(rank)}.here`)));
      const problem = `two processes save as rank ${rank}: this one, ${describeOwner(self)}, and ${other}.`;
      throw await meeting.fail(new OptError("BAD_ARGUMENT", "saveCheckpoint", problem, "Give each its own rank."));
    }
    return meeting.entered();
  } catch (error) {
    // A place that is gone was an attempt that has ended.
    if (isMissing(error)) return undefined;
    throw await giveUp(meeting, error);
  } finally {
    if (!meeting.isMember) endAttempt(self);
  }
}

async function readPointer(
  fileSystem: FileSystem,
  path: string,
): Promise<{ attempt: Attempt; terms: string } | undefined> {
  // Whoever creates it writes it at once, unless it dies in between.
  for (let tries = 0; tries < 100; tries++) {
    const [, attempt, terms] = /^(\S+) (.*)\n$/.exec(await readText(fileSystem, path)) ?? [];
    if (attempt !== undefined) return { attempt, terms: terms! };
    if ((await fileSystem.kind(path)) === undefined) return undefined;
    await sleep(20);
  }
  return undefined;
}
