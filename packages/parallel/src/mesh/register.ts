/** Communicators say who saves tensors together. */
import { above, type NamedTensors } from "../communicator/above";
import type { Communicator } from "../communicator/communicator";
import { placing } from "./placing";

above.placing = (communicator: Communicator, tensors: NamedTensors) => placing(communicator, tensors, false) as never;
