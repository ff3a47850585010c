export const main = () => "x".repeat(300_000);
