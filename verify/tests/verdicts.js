// SPDX-License-Identifier: Apache-2.0
// Runs the verifier of akaion_verify.html under Node, for the tests: it is given one job a line on standard
// input, and prints one report a line. Owns nothing else: what a report should say is the tests' to know.
//
// A job is {"books": {name: [[file, base64 or null], ...]}} to learn books, or {"book": name, "edits": [[file,
// start, end, base64], ...], "drop": [file, ...], "pin": text or null, "pin_inside": bool, "policies": [hex or
// line, ...], "witnesses": [text, ...]}
// to verify one of them after each edit has replaced the bytes from start to end; or {"signature": [key,
// message, signature]} in hex, and {"digest": hex}, which is answered by [sha256, sha512].
"use strict";
const { readFileSync } = require("node:fs");
const { createInterface } = require("node:readline");
const { join } = require("node:path");
const { runInThisContext } = require("node:vm");

const page = readFileSync(join(__dirname, "..", "akaion_verify.html"), "utf8");
runInThisContext(/<script>([^]*?)<\/script>/.exec(page)[1], "akaion_verify.html");
const { verify, readPolicy, signatureOk, sha256, sha512, hex } = globalThis.AkaionVerify;

const books = new Map();
const bytesOf = (text, encoding) => new Uint8Array(Buffer.from(text, encoding));
const splice = (bytes, start, end, put) => new Uint8Array(Buffer.concat([bytes.subarray(0, start), put, bytes.subarray(end)]));

const answer = (job) => {
  if (job.signature) return signatureOk(...job.signature.map((text) => bytesOf(text, "hex")));
  if (job.digest !== undefined) return [sha256, sha512].map((hash) => hex(hash(bytesOf(job.digest, "hex"))));
  if (job.books) {
    for (const [name, files] of Object.entries(job.books)) {
      books.set(name, new Map(files.map(([file, data]) => [file, data === null ? null : bytesOf(data, "base64")])));
    }
    return books.size;
  }
  const files = new Map(books.get(job.book));
  for (const [file, start, end, put] of job.edits ?? []) {
    files.set(file, splice(files.get(file) ?? new Uint8Array(), start, end, Buffer.from(put, "base64")));
  }
  for (const file of job.drop ?? []) files.delete(file);
  const policies = (job.policies ?? []).map((text) =>
    /^[0-9a-f]{64}$/.test(text) ? { digest: text, grants: null } : readPolicy(text));
  if (policies.includes(null)) return null;
  return verify([...files].map(([name, bytes]) => ({ name, bytes })),
    { pin: job.pin ?? null, pinInside: job.pin_inside ?? false, policies, witnesses: job.witnesses ?? [] });
};

createInterface({ input: process.stdin }).on("line", (line) => console.log(JSON.stringify(answer(JSON.parse(line)))));
