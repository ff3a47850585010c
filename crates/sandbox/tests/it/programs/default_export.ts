export default async (): Promise<number> => {
  await null;
  return 42;
};
