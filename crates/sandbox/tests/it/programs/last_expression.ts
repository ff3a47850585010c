const numbers: number[] = [1, 2, 3];
numbers.reduce((sum, number) => sum + number, 0);
