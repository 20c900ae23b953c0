import { emulatedContract } from "./testing/contract";

await emulatedContract({ sampled: false });
